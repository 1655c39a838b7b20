"""A history of a journal on a simulated disk: many lives, each ended by a crash or a failure.

What must hold, whatever fails: no committed record is lost, doubled or changed, and their order is
kept; a snapshot that was made never goes back; after a mere crash every folder opens again; what
was flipped is refused, or was never acknowledged; a folder holds one generation.
"""

from collections.abc import Callable
from itertools import count
from struct import Struct
from zlib import crc32

from asyncfeded.core.errors import FileError, StateError
from asyncfeded.store.disk import Disk
from asyncfeded.store.frame import HEADER
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import SECTOR
from faults.chance import Chance, InvariantError
from faults.simulated_disk import RATES, Crash, SimulatedDisk

LIVES = 20
STEPS_OF_A_LIFE = 60
MOST_FILES = 2
MOST_FAULTY_OPENINGS = 4
LONGEST_JOURNAL = 8 * SECTOR
FLIPS = 8
_STATE = Struct("<QI")
_FITS = SECTOR - HEADER

MakeJournal = Callable[[Disk, Callable[[int], bytes]], Journal]


class JournalHistory:
    """One seed's history; the mutations of a test bring another disk or another journal."""

    def __init__(
        self,
        seed: int,
        trace: bool = False,
        make_disk: Callable[[Chance], SimulatedDisk] = SimulatedDisk,
        make_journal: MakeJournal = Journal,
    ) -> None:
        self.chance = Chance(seed, RATES, trace)
        self._random = self.chance.random
        self._disk = make_disk(self.chance)
        self._make_journal = make_journal
        # What is known: the records since the last snapshot, and what each state must be.
        self._records: dict[int, bytes] = {}
        self._states = {0: 0}
        self._appended = 0
        self._acknowledged = 0
        self._snapshot: int | None = None

    def run(self) -> None:
        """Go through all lives; raises an InvariantError if anything does not hold."""
        for _ in range(LIVES):
            journal = self._open()
            try:
                self._live(journal)
            except Crash:
                pass
            except FileError as error:
                self._check_that_it_is_over(journal, str(error))
            self.chance.tell("-- end of a life")
            self._disk.restart(power_lost=self._random.random() < 0.5)

    # A life -------------------------------------------------------------------------------

    def _live(self, journal: Journal) -> None:
        if journal.is_new:
            self._make_snapshot(journal)
        for _ in range(self._random.randrange(STEPS_OF_A_LIFE)):
            choice = self._random.random()
            if choice < 0.60:
                self._append(journal)
            elif choice < 0.80:
                self._commit(journal)
            elif choice < 0.85:
                self._wait_for_any(journal)
            elif choice < 0.88 or journal.size > LONGEST_JOURNAL:
                self._make_snapshot(journal)
            else:
                self._rot(self._disk)
            self._require(journal.committed <= self._appended, "it commits what is not there")
            self._require(journal.committed >= self._acknowledged, "it takes back a commit")

    def _append(self, journal: Journal) -> None:
        content = self._content()
        number = self._appended + 1
        self.chance.tell("append", number, len(content))
        self._records[number] = content
        self._states[number] = crc32(content, self._states[number - 1])
        self._appended = number  # also if the call fails: the record may be there or not
        middle = self._random.randint(0, len(content))
        given = journal.append(content[:middle], content[middle:])
        self._require(given == number, f"it gives record {number} the number {given}")

    def _commit(self, journal: Journal) -> None:
        self.chance.tell("commit", self._appended)
        journal.commit()
        self._acknowledge(journal, self._appended)

    def _wait_for_any(self, journal: Journal) -> None:
        number = self._random.randint(0, self._appended)
        self.chance.tell("wait for", number)
        journal.wait_for(number)
        self._acknowledge(journal, max(number, self._acknowledged))

    def _acknowledge(self, journal: Journal, number: int) -> None:
        self._require(journal.committed >= number, f"it does not commit record {number}")
        self._acknowledged = journal.committed

    def _make_snapshot(self, journal: Journal) -> None:
        number = self._appended
        self.chance.tell("snapshot", number)
        journal.snapshot(self._state(number))
        self._snapshot = number
        self._acknowledge(journal, number)
        self._require_one_generation(self._disk)

    def _check_that_it_is_over(self, journal: Journal, message: str) -> None:
        """After a failure every call must raise the same, and nothing more is acknowledged."""
        self.chance.enabled = False
        for call in (journal.append, journal.commit, journal.snapshot, lambda: journal.wait_for(0)):
            try:
                call()
            except FileError as error:
                self._require(str(error) == message, f"it says {error}, after {message}")
            else:
                self._require(False, f"it goes on after {message}")
        self._require(journal.committed >= self._acknowledged, "it takes back a commit")
        self.chance.enabled = True

    # After a crash ------------------------------------------------------------------------

    def _open(self) -> Journal:
        """Open until nothing fails, and check all that is there."""
        for attempt in count():
            self.chance.enabled = attempt < MOST_FAULTY_OPENINGS
            flipped = self.chance.faults["bit flipped in reading"]
            self.chance.tell("open")
            try:
                journal = self._make_journal(self._disk, self._random.randbytes)
                self._check(journal, self._disk)
                break
            except Crash:
                self._disk.restart(power_lost=self._random.random() < 0.5)
            except FileError:
                pass
            except StateError as error:
                if self.chance.faults["bit flipped in reading"] == flipped:
                    raise self._violation(f"it refuses what a crash left: {error}") from error
        self.chance.enabled = True
        for number in range(journal.number + 1, self._appended + 1):
            del self._records[number], self._states[number]
        self._appended = self._acknowledged = journal.number
        return journal

    def _check(self, journal: Journal, disk: SimulatedDisk) -> None:
        """Compare all that an opened journal has with what is known."""
        if journal.is_new:
            self._require(self._snapshot is None, "the snapshot is lost")
            return
        state = bytes(journal.read_snapshot())
        at, _ = _STATE.unpack_from(state)
        self._require(self._snapshot is None or at >= self._snapshot, "an older snapshot is back")
        self._require(state == self._state(at), f"the snapshot of record {at} is changed")
        last = at
        for number, content in journal.records():
            last += 1
            self._require(number == last, f"record {number} follows record {last - 1}")
            self._require(
                bytes(content) == self._records.get(number), f"record {number} is changed"
            )
        self._require(last == journal.number == journal.committed, "it says another last record")
        self._require(
            self._acknowledged <= last,
            f"record {self._acknowledged} was acknowledged, and record {last} is the last",
        )
        self._require_one_generation(disk)

    def _rot(self, disk: SimulatedDisk) -> None:
        """Flip bits of a copy of the folder: it must be refused, or hold all that it must."""
        rotten = disk.copy()
        for _ in range(FLIPS):
            name = self._random.choice(list(rotten.files))
            content = rotten.files[name].seen
            place, bit = self._random.randrange(len(content)), 1 << self._random.randrange(8)
            content[place] ^= bit
            self.chance.count("bit flipped on the disk")
            self.chance.tell("  in", name, "at", place)
            try:
                journal = self._make_journal(rotten, self._random.randbytes)
                self._check(journal, rotten)
            except StateError:
                content[place] ^= bit
            else:
                return  # it was never acknowledged; the folder may have been mended

    # What is written ----------------------------------------------------------------------

    def _state(self, number: int) -> bytes:
        if number not in self._states:
            raise self._violation(f"a snapshot of record {number} was never made")
        state = _STATE.pack(number, self._states[number])
        return state + bytes([number % 3]) * (number * 97 % 1500)

    def _content(self) -> bytes:
        """Content of every awkward kind and size."""
        random = self._random
        match random.randrange(6):
            case 0:
                return random.randbytes(random.randrange(60))
            case 1:
                return random.randbytes(_FITS + random.randint(-1, 1))
            case 2:
                return random.randbytes(random.randrange(3 * SECTOR))
            case 3:
                return bytes(random.randrange(4 * SECTOR))
            case 4:  # one bit in many zeros
                content = bytearray(random.randrange(SECTOR, 4 * SECTOR))
                content[random.randrange(len(content))] = 1 << random.randrange(8)
                return bytes(content)
            case _:
                return b"\xff" * random.randrange(2 * SECTOR)

    # What must hold -----------------------------------------------------------------------

    def _require_one_generation(self, disk: SimulatedDisk) -> None:
        files = len(disk.files)
        self._require(files <= MOST_FILES, f"{files} files are there: {sorted(disk.files)}")

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise self._violation(otherwise)

    def _violation(self, problem: str) -> InvariantError:
        return InvariantError(problem)
