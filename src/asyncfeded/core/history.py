"""The versions of the model that are still needed (the paper's GMIS).

The paper's server appends every version to a sequence and keeps it for ever. Only versions that
some client still trains from are ever read again, so here a version is leased to a client with
its task and dropped with the last lease: memory is bounded by the clients at work, not by the
length of the run. If even these versions do not fit into memory, a sketch can stand for each.
"""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, cast, get_args

import numpy as np

from asyncfeded.core import vectors
from asyncfeded.core.errors import SettingError, VersionError, require
from asyncfeded.core.state import HistoryState, VersionState, check, check_vector, own_vector
from asyncfeded.core.vectors import Vector, read_only
from asyncfeded.late import Late

if TYPE_CHECKING:
    from asyncfeded.core import sketch
    from asyncfeded.core.sketch import Sketch
else:
    sketch = Late("asyncfeded.core.sketch", globals(), "sketch")

Keep = Literal["leased", "everything", "sketch"]

SPARE_BUFFERS = 2
"""How many buffers of dropped versions are kept: an update frees two at most and takes one."""
SKETCH_BUCKETS = 65_536
MOST_BUCKETS = 2**24
NOTHING: Vector = read_only(np.empty(0, dtype=np.float32))
"""Stands for parameters that are not kept."""


@dataclass(slots=True)
class _Version:
    """A version: its memory, the view that readers get, and the number of its leases.

    If only a sketch of the version is kept, `buffer` is None, and `statistics` has the elements
    behind the trained ones.
    """

    buffer: Vector | None
    view: Vector
    sketch: "Sketch | None" = None
    statistics: Vector | None = None
    leases: int = 1


class VersionHistory:
    """Versions by number, with leases.

    `keep="leased"` drops a version with its last lease and reuses its memory;
    `keep="everything"` is the paper's sequence. `keep="sketch"` keeps the current version whole,
    and a sketch of `buckets` numbers for every older version that is leased: it tells the distance
    from the current version within a known error (see `core/sketch`).
    """

    def __init__(self, keep: Keep = "leased", buckets: int = SKETCH_BUCKETS) -> None:
        if keep not in get_args(Keep):
            raise SettingError(
                f"history must be 'leased', 'everything' or 'sketch'; given {keep!r}"
            )
        require(1 <= buckets <= MOST_BUCKETS, "buckets", f"from 1 to {MOST_BUCKETS:,}", buckets)
        self.keep = keep
        self.buckets = buckets
        self.is_exact = keep != "sketch"
        """Whether every stored version has all its parameters."""
        self._versions: dict[int, _Version] = {}
        self._free: list[Vector] = []
        self._newest: _Version | None = None
        self.current: Vector = NOTHING
        """The parameters of the newest version, as a read-only view."""

    def __len__(self) -> int:
        return len(self._versions)

    def __contains__(self, version: int) -> bool:
        return version in self._versions

    def __getitem__(self, version: int) -> Vector:
        """The parameters of a version, as a read-only view."""
        stored = self._versions.get(version)
        if stored is None:
            raise VersionError(
                f"version {version} is not stored; it was dropped with its last lease"
            )
        if stored.buffer is None:
            raise VersionError(f"of version {version} only a sketch is stored")
        return stored.view

    def state(self) -> HistoryState:
        """The stored versions as data; their arrays are not copied."""
        versions = [
            VersionState(
                number, v.leases, None if v.buffer is None else v.view, v.sketch, v.statistics
            )
            for number, v in self._versions.items()
        ]
        return HistoryState(self.keep, self.buckets, versions)

    @classmethod
    def restore(cls, state: HistoryState, size: int, trained: int) -> Self:
        """Make the history that a state was taken from."""
        check(state.keep in get_args(Keep), f"versions are kept as {state.keep!r}")
        history = cls(cast(Keep, state.keep), state.buckets)
        newest = max((version.number for version in state.versions), default=0)
        for saved in state.versions:
            version = saved.number
            check(version not in history, f"version {version} is stored twice")
            check(saved.leases >= 0, f"version {version} has {saved.leases} leases")
            check_vector(saved.parameters, size, f"version {version}")
            check_vector(saved.statistics, size - trained, f"the statistics of version {version}")
            sketched = saved.sketch is not None and saved.statistics is not None
            whole = saved.parameters is not None
            fits = whole if history.is_exact else sketched and (whole or version < newest)
            check(fits, f"version {version} is not kept as {state.keep!r}")
            if saved.sketch is not None:
                check(saved.sketch.shape == (state.buckets,), f"the sketch of version {version}")
            buffer = None if saved.parameters is None else own_vector(saved.parameters)
            view = NOTHING if buffer is None else read_only(buffer)
            stored = _Version(buffer, view, saved.sketch, saved.statistics, saved.leases)
            history._versions[version] = stored
            if version == newest:
                history._newest, history.current = stored, view
        return history

    def leases(self) -> dict[int, int]:
        """The number of leases on every stored version."""
        return {number: stored.leases for number, stored in self._versions.items()}

    @property
    def is_used(self) -> bool:
        """Whether a version was ever stored here."""
        return self._newest is not None

    def norm_and_distance(
        self, delta: Vector, base: int, current: int, trained: int
    ) -> tuple[float, float]:
        """‖Δ‖ and ‖x_current − x_base‖ over the elements that are trained."""
        left, right = self._versions[current], self._versions[base]
        if trained < delta.size:
            delta = delta[:trained]
        if left is right:
            return vectors.norm(delta), 0.0
        if left.sketch is not None and right.sketch is not None:
            return vectors.norm(delta), sketch.distance(left.sketch, right.sketch)
        return vectors.norm_and_distance(delta, left.view, right.view)

    def statistics(self, version: int, trained: int) -> Vector:
        """The elements of a version that lie behind the trained ones."""
        stored = self._versions[version]
        return stored.view[trained:] if stored.statistics is None else stored.statistics

    def empty_buffer(self, size: int) -> Vector:
        """Memory for the next version; that of a dropped version if there is any."""
        return self._free.pop() if self._free else np.empty(size, dtype=np.float32)

    def return_buffer(self, buffer: Vector) -> None:
        """Take back memory that did not become a version."""
        self._free.append(buffer)

    def store(self, version: int, buffer: Vector, trained: int | None = None) -> None:
        """Keep `buffer` as the parameters of the newest `version`, with one lease on it."""
        stored = _Version(buffer, read_only(buffer))
        if not self.is_exact:
            trained = buffer.size if trained is None else trained
            stored.sketch = sketch.sketch(buffer[:trained], self.buckets)
            stored.statistics = buffer[trained:].copy()
        self._versions[version] = stored
        before, self._newest = self._newest, stored
        self.current = stored.view
        if before is not None and not self.is_exact:
            self._reclaim(before)

    def lease(self, version: int) -> None:
        """Count one more user of a stored version."""
        stored = self._versions.get(version)
        if stored is None:
            raise VersionError(f"version {version} is not stored and cannot be leased")
        stored.leases += 1

    def release(self, version: int) -> None:
        """Count one user less; a version without users is dropped."""
        stored = self._versions.get(version)
        if stored is None or stored.leases < 1:
            raise VersionError(f"version {version} is not leased and cannot be released")
        stored.leases -= 1
        if stored.leases == 0 and self.keep != "everything":
            del self._versions[version]
            if stored is self._newest:
                self.current = NOTHING
            self._reclaim(stored)

    def _reclaim(self, stored: _Version) -> None:
        """Keep a version's memory for a later version, unless somebody still reads it.

        What a reader sees must not change. Without a reader, the view has two references (the
        record's and the argument's) and the buffer one more, the view's.
        """
        if stored.buffer is None:
            return
        unseen = sys.getrefcount(stored.view) == 2 and sys.getrefcount(stored.buffer) == 3
        buffer, stored.buffer, stored.view = stored.buffer, None, NOTHING
        if unseen and len(self._free) < SPARE_BUFFERS:
            self._free.append(buffer)
