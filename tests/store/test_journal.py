"""What was committed is there again, once and in order."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from asyncfeded.store.disk import RealDisk
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import SECTOR


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RealDisk]:
    with RealDisk(tmp_path / "state") as disk:
        yield disk


def content_of(journal: Journal) -> tuple[bytes, list[tuple[int, bytes]]]:
    records = [(number, bytes(content)) for number, content in journal.records()]
    return bytes(journal.read_snapshot()), records


def test_a_new_folder_begins_with_a_snapshot(disk: RealDisk) -> None:
    assert Journal(disk).is_new
    Journal(disk).snapshot(b"beginning")
    again = Journal(disk)
    assert not again.is_new
    assert content_of(again) == (b"beginning", [])


def test_records_come_back_with_their_numbers_in_order(disk: RealDisk) -> None:
    journal = Journal(disk)
    journal.snapshot()
    vector = np.arange(1000, dtype=np.float32)
    assert journal.append(b"one, ", memoryview(b"in two pieces")) == 1
    assert journal.append(vector) == 2
    assert journal.append() == 3
    journal.commit()
    assert (journal.number, journal.committed) == (3, 3)
    again = Journal(disk)
    assert (again.number, again.committed, again.size) == (3, 3, journal.size)
    expected = [(1, b"one, in two pieces"), (2, vector.tobytes()), (3, b"")]
    assert content_of(again) == (b"", expected)
    assert again.append(b"four") == 4
    assert content_of(again)[1] == [*expected, (4, b"four")]


def test_content_of_zeros_comes_back(disk: RealDisk) -> None:
    journal = Journal(disk)
    journal.snapshot(np.zeros(10**6))
    journal.append(bytes(5000))
    journal.commit()
    assert content_of(Journal(disk)) == (bytes(8 * 10**6), [(1, bytes(5000))])


def test_a_snapshot_takes_the_place_of_all_that_was_before(disk: RealDisk) -> None:
    journal = Journal(disk)
    journal.snapshot(b"a")
    journal.append(b"x")
    journal.snapshot(b"a and x")
    assert (journal.number, journal.committed, journal.size) == (1, 1, SECTOR)
    assert sorted(disk.names()) == ["journal-000002.log", "snapshot-000002.bin"]
    assert journal.append(b"y") == 2
    journal.commit()
    assert content_of(Journal(disk)) == (b"a and x", [(2, b"y")])


def test_only_a_commit_acknowledges(disk: RealDisk) -> None:
    journal = Journal(disk)
    journal.snapshot()
    for _ in range(3):
        journal.append(b"x")
    assert journal.committed == 0
    journal.wait_for(2)
    assert journal.committed == 3


def test_other_files_in_the_folder_are_left_alone(disk: RealDisk) -> None:
    others = ["snapshot-1.bin", "journal-000009.bin", "notes.txt", "snapshot-000003.bin.copy"]
    for name in others:
        disk.create(name)
    Journal(disk).snapshot(b"a")
    assert content_of(Journal(disk)) == (b"a", [])
    assert set(others) < set(disk.names())
