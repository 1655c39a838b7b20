"""A journal that is broken on purpose is found broken, and the message replays it."""

from collections.abc import Sequence
from types import ModuleType

import pytest

from asyncfeded.store import frame, recovery, scan
from asyncfeded.store.disk import Buffer, Bytes
from asyncfeded.store.frame import HEADER, FileHead, Header
from asyncfeded.store.journal import Journal
from asyncfeded.store.recovery import journal_name, snapshot_name
from faults import histories
from faults.finding import MOST_HISTORIES, found_by
from faults.histories import HistoryError
from faults.journal_history import JournalHistory
from faults.simulated_disk import SimulatedDisk


class NoSyncOfJournals(SimulatedDisk):
    """As if a journal did not sync its records."""

    def sync(self, name: str) -> None:
        if not name.startswith("journal"):
            super().sync(name)


class NoSyncOfSnapshots(SimulatedDisk):
    """As if a journal did not sync a snapshot before it gives it its name."""

    def sync(self, name: str) -> None:
        if not name.startswith("snapshot"):
            super().sync(name)


class NoSyncOfTheFolder(SimulatedDisk):
    """As if a journal did not sync its folder."""

    def sync_folder(self) -> None:
        pass


class DeletesTwice(SimulatedDisk):
    """Does not mind if a file is deleted that is not there."""

    def delete(self, name: str) -> None:
        if name in self.files:
            super().delete(name)


class AcknowledgesBeforeItWrites(Journal):
    """Writes the last record with the next call."""

    _late: tuple[Buffer, ...] | None = None

    def append(self, *content: Buffer) -> int:
        self._write_late()
        super().wait_for(0)  # which raises after a failure
        self._late = content
        return self.number + 1

    def commit(self) -> None:
        super().commit()
        self.committed = self.number + (self._late is not None)

    def wait_for(self, number: int) -> None:
        self.commit()

    def snapshot(self, *content: Buffer) -> None:
        self._write_late()
        super().snapshot(*content)

    def _write_late(self) -> None:
        if self._late is not None:
            late, self._late = self._late, None
            super().append(*late)


class AcknowledgesBeforeItSyncs(Journal):
    """Says that a record is safe when it is written."""

    def commit(self) -> None:
        with self._writing():
            self.committed = self.number


class TriesAFailedSyncAgain(Journal):
    """Takes the success of the second sync for that of the first."""

    def commit(self) -> None:
        with self._writing():
            try:
                self._disk.sync(self._name)
            except OSError:
                self._disk.sync(self._name)
            self.committed = self.number


class DeletesTheOlderGenerationFirst(Journal):
    """Makes room before the new snapshot is safe."""

    def _begin(self, generation: int, content: Sequence[memoryview]) -> FileHead:
        if generation > 1:
            self._disk.delete(snapshot_name(generation - 1))
            self._disk.delete(journal_name(generation - 1))
        return super()._begin(generation, content)


def content_unchecked(header: Header, record: Bytes) -> memoryview:
    """Ignores the checksum of the content."""
    if header.mask:
        return frame.content_of(header, record) or memoryview(b"")
    return memoryview(record)[HEADER : HEADER + header.length]


def header_unchecked(sector: Bytes, key: bytes, start: int = 0) -> Header:
    """Ignores the checksum of the header."""
    return Header(*frame._FIELDS.unpack_from(sector, start + HEADER - frame._FIELDS.size))


def nothing(*_: object) -> None:
    """Leaves out a step."""


def never(*_: object) -> bool:
    """Leaves out a check that finds something."""
    return False


def always(*_: object) -> bool:
    """Takes every record that does not fit for one that a crash tore."""
    return True


@pytest.mark.parametrize("disk", [NoSyncOfJournals, NoSyncOfSnapshots, NoSyncOfTheFolder])
def test_a_sync_left_out_is_found(disk: type[SimulatedDisk]) -> None:
    assert found_by(lambda seed: JournalHistory(seed, make_disk=disk))


@pytest.mark.parametrize(
    "mutated",
    [
        AcknowledgesBeforeItWrites,
        AcknowledgesBeforeItSyncs,
        TriesAFailedSyncAgain,
        DeletesTheOlderGenerationFirst,
    ],
)
def test_a_promise_made_too_early_is_found(mutated: type[Journal]) -> None:
    assert found_by(lambda seed: JournalHistory(seed, make_disk=DeletesTwice, make_journal=mutated))


@pytest.mark.parametrize(
    ("module", "name", "mutation"),
    [
        (scan, "content_of", content_unchecked),
        (scan, "header_in", header_unchecked),
        (scan, "has_empty_sector", never),
        (scan, "has_empty_sector", always),
        (frame, "has_sparse_sector", never),
        (recovery, "_write_again", nothing),
    ],
)
def test_a_check_left_out_is_found(
    module: ModuleType, name: str, mutation: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, mutation)
    assert found_by(JournalHistory)


def test_a_failure_is_told_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recovery, "_write_again", nothing)
    with pytest.raises(HistoryError) as failure:
        histories.run_until("journal", 0, lambda _, number: number == MOST_HISTORIES)
    what, command = str(failure.value).splitlines()
    assert what.startswith("InvariantError: ")
    assert "python -m faults --level journal --seed " in command
    with pytest.raises(HistoryError) as again:
        histories.replay("journal", int(command.split()[-1]))
    assert str(again.value) == str(failure.value)
    assert "fault:" in capsys.readouterr().out
