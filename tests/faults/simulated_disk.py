"""A disk that keeps no more than a disk must, and fails in every way that one may.

That a file was created, renamed or deleted is safe once the folder is synced; until then any subset
of it may be. What is safe of a file is said in `simulated_file.py`.

A crash is of two kinds: the machine loses its power, and with it what is only in memory; or the
process is killed, and the next one finds all that was written.
"""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from asyncfeded.store.disk import Bytes
from faults.chance import Chance
from faults.simulated_file import SimulatedFile

RATES = {
    "process killed": 0.02,
    "power lost": 0.06,
    "write failed": 0.01,
    "disk full": 0.01,
    "sync failed": 0.05,
    "folder sync failed": 0.05,
    "reading failed": 0.01,
    "bit flipped in reading": 0.02,
}


class Crash(BaseException):
    """The process is gone. No code under test may catch it."""


class SimulatedDisk:
    """A folder in memory. After a crash every call crashes, until `restart`."""

    def __init__(self, chance: Chance) -> None:
        self.folder = Path("simulated")
        self.chance = chance
        self.files: dict[str, SimulatedFile] = {}
        self._safe: dict[str, SimulatedFile] = {}
        self._unsynced: list[tuple[str, dict[str, SimulatedFile | None]]] = []
        self._down = False
        self.between: Callable[[], None] = lambda: None
        """Called before every call: another thread may have its turn."""

    @property
    def is_down(self) -> bool:
        """Whether it has crashed."""
        return self._down

    def copy(self) -> "SimulatedDisk":
        """The same content on another disk, which does not fail."""
        other = SimulatedDisk(Chance(0, {}))
        for name, file in self.files.items():
            other.files[name] = file.copy()
        other._safe = dict(other.files)
        return other

    def restart(self, power_lost: bool) -> None:
        """End whatever runs, if no crash has, and begin again."""
        if power_lost and not self._down:
            self.chance.count("power lost")
            self._lose_power()
        self._down = False

    # What a journal calls -----------------------------------------------------------------

    def names(self) -> list[str]:
        self._reading("names")
        return list(self.files)

    def size(self, name: str) -> int:
        self._reading("size", name)
        return len(self._file(name).seen)

    def read(self, name: str, start: int, size: int) -> Bytes:
        self._reading("read", name, start, size)
        if self.chance.strikes("reading failed"):
            raise _error(errno.EIO)
        content = self._file(name).seen[start : start + size]
        if content and self.chance.strikes("bit flipped in reading"):
            content[self.chance.random.randrange(len(content))] ^= (
                1 << self.chance.random.randrange(8)
            )
        return content

    def create(self, name: str) -> None:
        self._before("create", name)
        if name in self.files:
            raise _error(errno.EEXIST)
        self._full()
        self._change("creation", {name: SimulatedFile()})
        self._after()

    def append(self, name: str, pieces: Sequence[Bytes]) -> None:
        self._write(name, self.size(name), b"".join(pieces))

    def rewrite(self, name: str, start: int, content: Bytes) -> None:
        self._write(name, start, content)

    def cut(self, name: str, size: int) -> None:
        self._before("cut", name, size)
        self._file(name).cut(size)
        self._after()

    def sync(self, name: str) -> None:
        self._before("sync", name)
        file = self._file(name)
        if self.chance.strikes("sync failed"):
            file.fail_to_sync(self.chance)
            raise _error(errno.EIO)
        file.sync()
        self._after()

    def sync_folder(self) -> None:
        self._before("sync_folder")
        if self.chance.strikes("folder sync failed"):
            raise _error(errno.EIO)
        self._safe = dict(self.files)
        self._unsynced.clear()
        self._after()

    def rename(self, old: str, new: str) -> None:
        self._before("rename", old, new)
        self._full()
        self._change("renaming", {old: None, new: self._file(old)})
        self._after()

    def delete(self, name: str) -> None:
        self._before("delete", name)
        self._file(name)
        self._change("deletion", {name: None})
        self._after()

    # How it fails -------------------------------------------------------------------------

    def _reading(self, *call: object) -> None:
        """Reading changes nothing: to crash there is to crash before the next change."""
        self.between()
        if self._down:
            raise Crash
        if self.chance.is_traced:
            self.chance.tell("  disk:", *call)

    def _before(self, *call: object) -> None:
        """Crash before the call has any effect, or let it begin."""
        self._reading(*call)
        self._crash_perhaps(0.5)

    def _after(self) -> None:
        """Crash when the call has had its effect, but nobody knows it."""
        self._crash_perhaps(0.5)

    def _crash_perhaps(self, share: float) -> None:
        if self.chance.random.random() < share:
            if self.chance.strikes("power lost"):
                self._lose_power()
            elif not self.chance.strikes("process killed"):
                return
            self._down = True
            raise Crash

    def _write(self, name: str, start: int, content: Bytes) -> None:
        self._before("write", name, start, len(content))
        file = self._file(name)
        chance = self.chance
        failed = chance.strikes("write failed")
        full = not failed and chance.strikes("disk full")
        killed = not failed and not full and chance.strikes("process killed")
        if failed or full or killed:
            file.write(start, content[: chance.random.randint(0, len(content))])
        if killed:
            self._down = True
            raise Crash
        if failed or full:
            raise _error(errno.EIO if failed else errno.ENOSPC)
        file.write(start, content)
        self._after()

    def _full(self) -> None:
        if self.chance.strikes("disk full"):
            raise _error(errno.ENOSPC)

    def _file(self, name: str) -> SimulatedFile:
        if name not in self.files:
            raise _error(errno.ENOENT)
        return self.files[name]

    def _change(self, what: str, entries: dict[str, SimulatedFile | None]) -> None:
        self._unsynced.append((what, entries))
        _apply(self.files, entries)

    def _lose_power(self) -> None:
        if self._unsynced:
            kept = self.chance.subset(len(self._unsynced))
            for (what, entries), is_kept in zip(self._unsynced, kept, strict=True):
                if is_kept:
                    _apply(self._safe, entries)
                else:
                    self.chance.count(f"{what} lost")
            self._unsynced.clear()
        self.files = dict(self._safe)
        for file in self.files.values():
            file.lose_power(self.chance)


def _apply(files: dict[str, SimulatedFile], entries: dict[str, SimulatedFile | None]) -> None:
    for name, file in entries.items():
        if file is None:
            files.pop(name, None)
        else:
            files[name] = file


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
