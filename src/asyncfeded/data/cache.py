"""Compact copies of data that is slow to read.

They lie in the user's cache folder, or in the folder that ASYNCFEDED_CACHE_DIR names, so that the
data's own folder may be read-only. A copy is used only while the files that it was made from have
the same names, sizes and times.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol, Self, TypeVar

from platformdirs import user_cache_path

from asyncfeded.core.errors import FileError

FORMAT = "1"
"""Raise it when the contents of a copy, or the cleaning of the data, change."""


class Cached(Protocol):
    """A data set that can be written to one file and read again."""

    def write(self, path: Path, source: str) -> None:
        """Write everything, and a text that says what it was made from."""

    @classmethod
    def read(cls, path: Path, source: str | None = None) -> Self:
        """Read everything; with a text, refuse a file that was made from another."""


def cache_folder() -> Path:
    """The folder of the compact copies."""
    given = os.environ.get("ASYNCFEDED_CACHE_DIR")
    return Path(given) if given else user_cache_path("asyncfeded")


Data = TypeVar("Data", bound=Cached)


def cached(kind: type[Data], folder: Path, files: Sequence[Path], make: Callable[[], Data]) -> Data:
    """Read the data from the cache, or make them from these files and put them there.

    A folder that cannot be written costs time, not the run.
    """
    source = _fingerprint(folder, files)
    place = sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    path = cache_folder() / f"{kind.__name__.lower()}-{place}.safetensors"
    with suppress(FileError):
        return kind.read(path, source)
    data = make()
    with suppress(FileError):
        data.write(path, source)
    return data


def _fingerprint(folder: Path, files: Sequence[Path]) -> str:
    digest = sha256(FORMAT.encode())
    for file in files:
        try:
            status = file.stat()
        except OSError as error:
            raise FileError(f"{str(file)!r} cannot be read: {error.strerror}") from None
        name = file.relative_to(folder).as_posix()
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
