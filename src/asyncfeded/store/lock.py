"""A folder that belongs to one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from asyncfeded.core.errors import InUseError


@contextmanager
def locked(folder: Path, in_use: str) -> Iterator[int]:
    """Lock a folder and give its descriptor; `in_use` is the error if another has locked it.

    The lock ends with the process, however that ends.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(in_use) from None
        except OSError:
            pass  # a file system without locks
        yield descriptor
    finally:
        with suppress(OSError):
            # A process that was forked meanwhile shares the lock: give it up for both.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
