"""The versions of the model that are still needed (the paper's GMIS).

The paper's server appends every version to a sequence and keeps it for ever. Only versions that
some client still trains from are ever read again, so here a version is leased to a client with
its task and dropped with the last lease: memory is bounded by the clients at work, not by the
length of the run.
"""

import sys
from typing import Literal

import numpy as np

from asyncfeded.core.errors import SettingError, VersionError
from asyncfeded.core.vectors import Vector, read_only

Keep = Literal["leased", "everything"]

SPARE_BUFFERS = 2
"""How many buffers of dropped versions are kept: an update frees two at most and takes one."""


class VersionHistory:
    """Versions by number, with leases.

    `keep="leased"` drops a version with its last lease and reuses its memory;
    `keep="everything"` is the paper's sequence.
    """

    def __init__(self, keep: Keep = "leased") -> None:
        if keep not in ("leased", "everything"):
            raise SettingError(f"history must be 'leased' or 'everything'; given {keep!r}")
        self.keep = keep
        self._buffers: dict[int, Vector] = {}
        self._leases: dict[int, int] = {}
        self._free: list[Vector] = []

    def __len__(self) -> int:
        return len(self._buffers)

    def __contains__(self, version: int) -> bool:
        return version in self._buffers

    def __getitem__(self, version: int) -> Vector:
        """The parameters of a version, as a read-only view."""
        try:
            return read_only(self._buffers[version])
        except KeyError:
            raise VersionError(
                f"version {version} is not stored; it was dropped with its last lease"
            ) from None

    def empty_buffer(self, size: int) -> Vector:
        """Memory for the next version: of a dropped version where there is one."""
        return self._free.pop() if self._free else np.empty(size, dtype=np.float32)

    def return_buffer(self, buffer: Vector) -> None:
        """Take back memory that did not become a version."""
        self._free.append(buffer)

    def store(self, version: int, buffer: Vector) -> None:
        """Keep `buffer` as the parameters of `version`, with one lease on it."""
        self._buffers[version] = buffer
        self._leases[version] = 1

    def lease(self, version: int) -> None:
        """Count one more user of a stored version."""
        if version not in self._leases:
            raise VersionError(f"version {version} is not stored and cannot be leased")
        self._leases[version] += 1

    def release(self, version: int) -> None:
        """Count one user less; the last one drops the version."""
        if self._leases.get(version, 0) < 1:
            raise VersionError(f"version {version} is not leased and cannot be released")
        self._leases[version] -= 1
        if self._leases[version] == 0 and self.keep == "leased":
            self._drop(version)

    def _drop(self, version: int) -> None:
        # Somebody may still hold a view, which must not change under them: every view counts as
        # a reference to its buffer. Without one there are two: the dictionary's and the argument.
        unseen = sys.getrefcount(self._buffers[version]) == 2
        buffer = self._buffers.pop(version)
        del self._leases[version]
        if unseen and len(self._free) < SPARE_BUFFERS:
            self._free.append(buffer)
