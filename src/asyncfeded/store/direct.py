"""Large writes past the system's cache: straight from memory to the disk.

By way of the cache, every byte is copied to memory that has to be found first, which takes more of
a processor than all else in a journal; and nobody reads a journal but after a crash.
"""

import errno
import os
from collections.abc import Sequence
from mmap import mmap
from pathlib import Path

_SECTOR = 512
"""Writes of whole sectors, at the beginning of one, are what a disk does itself."""
DIRECT_FROM = 2**20
"""Fewer bytes are written as quickly by way of the cache."""
_BUFFER = 2**22
_FLAG: int | None = getattr(os, "O_DIRECT", None)
_NOT_HERE = (errno.EINVAL, errno.EOPNOTSUPP)
"""What a file system says that has no such writes, or not to every sector."""


class DirectWrites:
    """Writes to files of one folder, as long as its file system can."""

    def __init__(self) -> None:
        self._works = _FLAG is not None
        self._buffer: mmap | None = None

    def close(self) -> None:
        """Give the memory back."""
        if self._buffer is not None:
            self._buffer.close()
            self._buffer = None

    def write(self, path: Path, pieces: Sequence[memoryview], start: int) -> bool:
        """Write all pieces from `start` on; False if they are to be written in the usual way.

        An error is an OSError, as usual; some of the bytes may be written then.
        """
        size = sum(map(len, pieces))
        if not self._works or size < DIRECT_FROM or start % _SECTOR or size % _SECTOR:
            return False
        assert _FLAG is not None
        try:
            file = os.open(path, os.O_WRONLY | _FLAG)
            try:
                self._write(file, pieces, start)
            finally:
                os.close(file)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            self._works = False
        return self._works

    def _write(self, file: int, pieces: Sequence[memoryview], start: int) -> None:
        """Copy to memory that begins where a disk can read it, and write it when it is full."""
        if self._buffer is None:
            self._buffer = mmap(-1, _BUFFER)
        with memoryview(self._buffer) as buffer:
            filled = 0
            for piece in pieces:
                done = 0
                while done < len(piece):
                    more = min(len(piece) - done, _BUFFER - filled)
                    buffer[filled : filled + more] = piece[done : done + more]
                    filled, done = filled + more, done + more
                    if filled == _BUFFER:
                        _write_all(file, buffer, start)
                        start, filled = start + filled, 0
            with buffer[:filled] as rest:
                _write_all(file, rest, start)


def _write_all(file: int, content: memoryview, start: int) -> None:
    while content:
        written = os.pwrite(file, content, start)
        if written == 0 or written % _SECTOR:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        content, start = content[written:], start + written
