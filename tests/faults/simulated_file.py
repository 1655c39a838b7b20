"""A file on a simulated disk: what a process sees of it, and what the disk has.

Written sectors stay in the operating system's memory until they are synced. Before that they reach
the disk one by one and in any order, and the length that the disk has is anywhere between the old
and the new. A failed sync may forget what it should have written and still show it: the next sync
then has nothing to do and succeeds.
"""

from asyncfeded.store.disk import Bytes
from asyncfeded.store.sectors import SECTOR
from faults.chance import Chance


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
