"""After a failed write nothing more is acknowledged."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.store.group_commit import GroupCommit
from asyncfeded.store.journal import Journal
from failing_disk import FailingDisk

FULL = (
    "journal '.*' cannot be written: No space left on device; nothing after record 1 was "
    "acknowledged: mend that, and start again from the folder"
)
SYNC = "journal '.*' cannot be written: Input/output error; nothing after record 1 was ack"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    with FailingDisk(tmp_path) as disk:
        yield disk


@pytest.fixture
def journal(disk: FailingDisk) -> Journal:
    journal = Journal(disk)
    journal.snapshot(b"a")
    journal.append(b"safe")
    journal.commit()
    return journal


def every_call(journal: Journal | GroupCommit) -> list[Callable[[], object]]:
    return [
        lambda: journal.append(b"y"),
        journal.commit,
        lambda: journal.wait_for(1),
        lambda: journal.snapshot(b"b"),
    ]


def test_after_a_full_disk_every_call_raises_the_same(disk: FailingDisk, journal: Journal) -> None:
    disk.full = True
    with pytest.raises(FileError, match=FULL):
        journal.append(b"x")
    for call in every_call(journal):
        with pytest.raises(FileError, match=FULL):
            call()
    assert journal.committed == 1
    again = Journal(disk)
    assert [bytes(content) for _, content in again.records()] == [b"safe"]
    assert again.append(b"x") == 2


def test_a_sync_that_failed_is_not_tried_again(disk: FailingDisk, journal: Journal) -> None:
    journal.append(b"x")
    disk.sync_fails = True
    syncs = disk.syncs
    for call in (journal.commit, *every_call(journal)):
        with pytest.raises(FileError, match=SYNC):
            call()
    assert disk.syncs == syncs + 1
    assert journal.committed == 1


def test_after_a_snapshot_that_failed_the_older_one_is_there(
    disk: FailingDisk, journal: Journal
) -> None:
    disk.full = True
    for call in (lambda: journal.snapshot(b"b"), *every_call(journal)):
        with pytest.raises(FileError, match=FULL):
            call()
    again = Journal(disk)
    assert bytes(again.read_snapshot()) == b"a"
    assert [bytes(content) for _, content in again.records()] == [b"safe"]
    assert sorted(disk.names()) == ["journal-000001.log", "snapshot-000001.bin"]


def test_an_interrupted_write_ends_the_journal_too(disk: FailingDisk, journal: Journal) -> None:
    disk.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        journal.append(b"x")
    with pytest.raises(FileError, match="cannot be written: KeyboardInterrupt; nothing after"):
        journal.append(b"x")


def test_a_folder_that_cannot_be_read_is_named(disk: FailingDisk, journal: Journal) -> None:
    disk.sync_fails = True
    with pytest.raises(FileError, match=r"journal '.*' cannot be opened: Input/output error"):
        Journal(disk)


def test_what_a_thread_could_not_write_is_not_acknowledged(
    disk: FailingDisk, journal: Journal
) -> None:
    with GroupCommit(journal) as group:
        disk.full = True
        number = group.append(b"x")
        with pytest.raises(FileError, match=FULL):
            group.wait_for(number)
        for call in every_call(group):
            with pytest.raises(FileError, match=FULL):
                call()
        assert group.committed == 1
