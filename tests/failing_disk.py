"""A disk that fails where a test says so."""

import errno
import os
from collections.abc import Sequence

from asyncfeded.store.disk import Bytes, RealDisk


class FailingDisk(RealDisk):
    """A folder whose next append is cut short by a full disk, or whose next sync fails, once."""

    full = False
    interrupted = False
    sync_fails = False
    syncs = 0

    def append(self, name: str, pieces: Sequence[Bytes]) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        if self.full:
            self.full = False
            super().append(name, [pieces[0][:20]])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().append(name, pieces)

    def sync(self, name: str) -> None:
        self.syncs += 1
        if self.sync_fails:
            self.sync_fails = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(name)
