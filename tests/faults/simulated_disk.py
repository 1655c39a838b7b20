"""A disk that keeps no more than a disk must, and fails in every way that one may.

Written sectors stay in the operating system's memory until they are synced, one by one and in any
order; a file's length on the disk is then anywhere between both lengths. That a file was created,
renamed or deleted is safe once the folder is synced; until then any subset of it may be.

A crash is of two kinds: the machine loses its power, and with it what is only in memory; or the
process is killed, and the next one finds all that was written. A failed sync may forget what it
should have written and still show it: the next sync then has nothing to do and succeeds.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from asyncfeded.store.disk import Bytes
from asyncfeded.store.sectors import SECTOR
from faults.chance import Chance

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


class SimulatedFile:
    """A file as the process sees it (`seen`) and as the disk has it (`safe`).

    `dirty` are the sectors that a sync has to write, and `writes` those of every write since.
    """

    __slots__ = ("cut_to", "dirty", "safe", "seen", "writes")

    def __init__(self) -> None:
        self.seen = bytearray()
        self.safe = bytearray()
        self.dirty: set[int] = set()
        self.writes: list[range] = []
        self.cut_to: int | None = None

    def copy(self) -> "SimulatedFile":
        other = SimulatedFile()
        other.seen, other.safe = self.seen[:], self.safe[:]
        other.dirty, other.writes, other.cut_to = set(self.dirty), self.writes[:], self.cut_to
        return other

    def write(self, start: int, content: Bytes) -> None:
        end = start + len(content)
        if content:
            self.seen[start:end] = content
            sectors = range(start // SECTOR, (end - 1) // SECTOR + 1)
            self.writes.append(sectors)
            self.dirty.update(sectors)

    def cut(self, size: int) -> None:
        del self.seen[size:]
        self.cut_to = size if self.cut_to is None else min(size, self.cut_to)
        self.dirty = {sector for sector in self.dirty if sector * SECTOR < size}
        self.writes = [sectors for sectors in self.writes if sectors.start * SECTOR < size]

    def sync(self) -> None:
        self._to_disk(self.dirty, len(self.seen), self.cut_to is not None)
        self._forget()

    def fail_to_sync(self, chance: Chance) -> None:
        """Write some of it, and forget that the rest must still be written."""
        size = max(len(self.safe), len(self.seen)) if chance.random.random() < 0.5 else 0
        self._to_disk(self._kept(chance), size or len(self.safe), False)
        self.dirty.clear()
        self.writes.clear()
        if chance.random.random() < 0.5:  # memory is short: the file is read from the disk again
            content = self.safe[: len(self.seen)]
            self.seen[:] = content.ljust(len(self.seen), b"\0")

    def lose_power(self, chance: Chance) -> None:
        """Only what is on the disk is left, with any part of what was not synced."""
        if self.dirty or self.cut_to is not None or len(self.safe) != len(self.seen):
            low = min(len(self.safe), len(self.seen) if self.cut_to is None else self.cut_to)
            high = max(len(self.safe), len(self.seen))
            size = chance.random.choice((low, high, chance.random.randint(low, high)))
            kept = self._kept(chance)
            if kept >= self.dirty and size < len(self.seen):
                chance.count("length lost")
            cut = self.cut_to is not None and chance.random.random() < 0.5
            self._to_disk(kept, size, cut)
            self._forget()
        self.seen[:] = self.safe

    def _forget(self) -> None:
        self.dirty.clear()
        self.writes.clear()
        self.cut_to = None

    def _kept(self, chance: Chance) -> set[int]:
        """The sectors that reach the disk without a sync; counts every write that does not."""
        if not self.dirty:
            return set()
        dirty = sorted(self.dirty)
        lots = zip(dirty, chance.subset(len(dirty)), strict=True)
        kept = {sector for sector, is_kept in lots if is_kept}
        missing = False
        for sectors in self.writes:
            number = sum(sector in kept for sector in sectors)
            if number == len(sectors):
                if missing:
                    chance.count("write before an earlier one")
                continue
            missing = True
            chance.count("write torn" if number else "write lost")
        return kept

    def _to_disk(self, sectors: set[int], size: int, cut: bool) -> None:
        safe = self.safe
        if cut and self.cut_to is not None:
            del safe[self.cut_to :]
        if len(safe) < size:
            safe.extend(bytes(size - len(safe)))
        for sector in sectors:
            place = slice(sector * SECTOR, (sector + 1) * SECTOR)
            safe[place] = self.seen[place]
        del safe[size:]


class SimulatedDisk:
    """A folder in memory. After a crash every call crashes, until `restart`."""

    def __init__(self, chance: Chance) -> None:
        self.folder = Path("simulated")
        self.chance = chance
        self.files: dict[str, SimulatedFile] = {}
        self._safe: dict[str, SimulatedFile] = {}
        self._unsynced: list[tuple[str, dict[str, SimulatedFile | None]]] = []
        self._down = False

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
        if self._down:
            raise Crash
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
