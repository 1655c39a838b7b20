"""The seam between a journal and a disk: one folder of files, and what is safe in it when.

Nothing that is written is safe before it is synced: the content of a file by `sync`, and that a
file was created, renamed or deleted by `sync_folder`.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol, Self

import numpy.typing as npt

from asyncfeded.core.errors import FileError
from asyncfeded.store.direct import DirectWrites
from asyncfeded.store.lock import locked

Bytes = bytes | bytearray | memoryview
Buffer = Bytes | npt.NDArray[Any]

_BUFFERS_AT_ONCE = 1024
"""As many as Linux takes in one call (IOV_MAX)."""


class Disk(Protocol):
    """One folder. Whatever fails raises an OSError."""

    @property
    def folder(self) -> Path:
        """The folder's name, for messages."""

    def names(self) -> list[str]:
        """The names of the files in the folder."""

    def size(self, name: str) -> int:
        """The length of a file in bytes."""

    def read(self, name: str, start: int, size: int) -> Bytes:
        """Read a part of a file; it is shorter where the file ends."""

    def create(self, name: str) -> None:
        """Make an empty file; it must not be there."""

    def append(self, name: str, pieces: Sequence[Bytes]) -> None:
        """Write bytes at the end of a file."""

    def rewrite(self, name: str, start: int, content: Bytes) -> None:
        """Write bytes over a part of a file."""

    def cut(self, name: str, size: int) -> None:
        """Shorten a file to `size` bytes."""

    def sync(self, name: str) -> None:
        """Wait until everything written to a file is safe."""

    def sync_folder(self) -> None:
        """Wait until every creation, renaming and deletion is safe."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""

    def delete(self, name: str) -> None:
        """Delete a file."""


class RealDisk:
    """A folder of the operating system, locked for this process; a `with` block gives it back.

    The folder is made if it is not there.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        # A file stays open: a failed write-back is told only to those who had it open before.
        self._open: dict[str, int] = {}
        self._direct = DirectWrites()
        self._exit = ExitStack()
        try:
            _make(self.folder)
            in_use = (
                f"folder {str(folder)!r} is in use by another process: wait for its end, or choose "
                "another folder"
            )
            self._descriptor = self._exit.enter_context(locked(self.folder, in_use))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"folder {str(folder)!r} cannot be used: {reason}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files and give up the lock."""
        self._direct.close()
        while self._open:
            os.close(self._open.popitem()[1])
        self._exit.close()

    def names(self) -> list[str]:
        """The names of the files in the folder."""
        return [path.name for path in self.folder.iterdir()]

    def size(self, name: str) -> int:
        """The length of a file in bytes."""
        return os.fstat(self._file(name)).st_size

    def read(self, name: str, start: int, size: int) -> Bytes:
        """Read a part of a file; it is shorter where the file ends."""
        file = self._file(name)
        content = memoryview(bytearray(size))
        done = 0
        while done < size and (more := os.preadv(file, [content[done:]], start + done)):
            done += more
        return content[:done]

    def create(self, name: str) -> None:
        """Make an empty file; it must not be there."""
        self._open[name] = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)

    def append(self, name: str, pieces: Sequence[Bytes]) -> None:
        """Write bytes at the end of a file."""
        start = self.size(name)
        views = [memoryview(piece) for piece in pieces if len(piece)]
        if not self._direct.write(self.folder / name, views, start):
            _write(self._file(name), views, start)

    def rewrite(self, name: str, start: int, content: Bytes) -> None:
        """Write bytes over a part of a file."""
        _write(self._file(name), [content], start)

    def cut(self, name: str, size: int) -> None:
        """Shorten a file to `size` bytes."""
        os.ftruncate(self._file(name), size)

    def sync(self, name: str) -> None:
        """Wait until everything written to a file is safe."""
        os.fdatasync(self._file(name))

    def sync_folder(self) -> None:
        """Wait until every creation, renaming and deletion is safe."""
        os.fsync(self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        (self.folder / old).rename(self.folder / new)
        if new in self._open:
            os.close(self._open.pop(new))
        if old in self._open:
            self._open[new] = self._open.pop(old)

    def delete(self, name: str) -> None:
        """Delete a file."""
        (self.folder / name).unlink()
        if name in self._open:
            os.close(self._open.pop(name))

    def _file(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self.folder / name, os.O_RDWR)
        return self._open[name]


def _make(folder: Path) -> None:
    """Make a folder and those above it, and wait until they are safe.

    The folder may be there because a process was killed that had just made it.
    """
    parent = folder.absolute().parent
    if not parent.is_dir():
        _make(parent)
    folder.mkdir(exist_ok=True)
    with suppress(PermissionError):  # then nobody of ours has made the folder there
        descriptor = os.open(parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(file: int, pieces: Sequence[Bytes], start: int) -> None:
    """Write all pieces from `start` on, in as many calls as it takes."""
    left = [memoryview(piece) for piece in pieces if len(piece)]
    while left:
        written = os.pwritev(file, left[:_BUFFERS_AT_ONCE], start)
        if written == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        start += written
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]
