"""A torn end is cut off; damage is refused."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from struct import pack_into

import pytest

from asyncfeded.core.errors import StateError
from asyncfeded.store.disk import RealDisk
from asyncfeded.store.frame import Header
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import SECTOR

FIRST, SECOND = b"first", bytes(range(256)) * 4  # in one sector and in three
SNAPSHOT, JOURNAL = "snapshot-000001.bin", "journal-000001.log"
KEY = b"12345678"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A snapshot and two records, the first of which was safe before the second was written."""
    with RealDisk(tmp_path / "state") as disk:
        journal = Journal(disk, lambda _: KEY)
        journal.snapshot(b"state")
        for content in (FIRST, SECOND):
            journal.append(content)
            journal.commit()
    return tmp_path / "state"


def opened(folder: Path) -> list[bytes]:
    with RealDisk(folder) as disk:
        journal = Journal(disk)
        assert bytes(journal.read_snapshot()) == b"state"
        return [bytes(content) for _, content in journal.records()]


def flips(content: bytes) -> Iterator[bytes]:
    """The same with a bit flipped, once in every 7th byte."""
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        yield bytes(flipped)


def test_wherever_the_file_ends_early_the_records_before_are_there(folder: Path) -> None:
    whole = (folder / JOURNAL).read_bytes()
    assert len(whole) == 5 * SECTOR
    for size in range(SECTOR, len(whole), 13):
        (folder / JOURNAL).write_bytes(whole[:size])
        assert opened(folder) == ([FIRST] if size >= 2 * SECTOR else [])
        assert (folder / JOURNAL).stat().st_size == (2 if size >= 2 * SECTOR else 1) * SECTOR


@pytest.mark.parametrize("sector", [2, 3, 4])
def test_a_record_without_one_of_its_sectors_is_cut_off(folder: Path, sector: int) -> None:
    content = bytearray((folder / JOURNAL).read_bytes())
    content[sector * SECTOR : (sector + 1) * SECTOR] = bytes(SECTOR)
    (folder / JOURNAL).write_bytes(content)
    assert opened(folder) == [FIRST]
    with RealDisk(folder) as disk:
        journal = Journal(disk)
        assert journal.append(b"another") == 2
        journal.commit()
    assert opened(folder) == [FIRST, b"another"]


def test_a_torn_record_that_was_safe_before_is_damage(folder: Path) -> None:
    content = bytearray((folder / JOURNAL).read_bytes())
    content[SECTOR : 2 * SECTOR] = bytes(SECTOR)
    (folder / JOURNAL).write_bytes(content)
    with pytest.raises(
        StateError, match="record 1 at byte 512 is not whole, and record 2 says that it was; put"
    ):
        opened(folder)


def test_of_records_written_together_a_later_one_may_be_whole(folder: Path) -> None:
    with RealDisk(folder) as disk:
        journal = Journal(disk)
        journal.append(b"third")
        journal.append(b"fourth")
        journal.commit()
    content = bytearray((folder / JOURNAL).read_bytes())
    content[5 * SECTOR : 6 * SECTOR] = bytes(SECTOR)
    (folder / JOURNAL).write_bytes(content)
    assert opened(folder) == [FIRST, SECOND]


@pytest.mark.parametrize("name", [SNAPSHOT, JOURNAL])
def test_a_flipped_bit_anywhere_is_refused(folder: Path, name: str) -> None:
    for content in flips((folder / name).read_bytes()):
        (folder / name).write_bytes(content)
        with pytest.raises(StateError, match=f"{name}' is "):
            opened(folder)
        assert (folder / name).read_bytes() == content


@pytest.mark.parametrize("size", [0, 1, SECTOR, SECTOR + 1, 2 * SECTOR - 1, 3 * SECTOR])
def test_a_snapshot_of_another_length_is_refused(folder: Path, size: int) -> None:
    content = (folder / SNAPSHOT).read_bytes() + b"\xff" * SECTOR
    (folder / SNAPSHOT).write_bytes(content[:size])
    with pytest.raises(StateError, match=f"{SNAPSHOT}' is damaged: it"):
        opened(folder)


def test_another_format_is_refused_by_name(folder: Path) -> None:
    content = bytearray((folder / JOURNAL).read_bytes())
    pack_into("<Q", content, 8, 7)
    (folder / JOURNAL).write_bytes(content)
    with pytest.raises(StateError, match="is of format 7; this version of asyncfeded reads form"):
        opened(folder)


def test_a_snapshot_without_its_journal_is_refused(folder: Path) -> None:
    (folder / JOURNAL).unlink()
    with pytest.raises(StateError, match=f"{JOURNAL}' is damaged: it is not there, and {SNAPSHOT}"):
        opened(folder)


def test_a_journal_without_its_snapshot_is_refused(folder: Path) -> None:
    (folder / SNAPSHOT).unlink()
    with pytest.raises(StateError, match=f"{SNAPSHOT}' is damaged: it is not there, and {JOURNAL}"):
        opened(folder)


def test_a_journal_of_another_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    with RealDisk(tmp_path / "other") as disk:
        Journal(disk).snapshot()
    shutil.copy(tmp_path / "other" / JOURNAL, folder / JOURNAL)
    with pytest.raises(
        StateError, match=f"{JOURNAL}' is damaged: it does not belong to {SNAPSHOT}"
    ):
        opened(folder)


def test_a_missing_record_is_refused(folder: Path) -> None:
    content = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(content[:SECTOR] + content[2 * SECTOR :])
    with pytest.raises(StateError, match="at byte 512 there is not the header of record 1"):
        opened(folder)


def test_a_length_beyond_the_file_takes_no_memory(folder: Path) -> None:
    header = Header(number=3, safe=2, length=2**60, checksum=0, mask=0).to_bytes(KEY)
    with (folder / JOURNAL).open("ab") as file:
        file.write(header.ljust(SECTOR, b"\xff"))
    assert opened(folder) == [FIRST, SECOND]


def test_what_a_killed_process_left_behind_is_deleted(folder: Path) -> None:
    for name in ("snapshot-000002.unfinished", "journal-000002.log", "journal-000000.log"):
        (folder / name).write_bytes(b"x" * 100)
    assert opened(folder) == [FIRST, SECOND]
    assert {"journal-000002.log", "snapshot-000002.unfinished"}.isdisjoint(
        path.name for path in folder.iterdir()
    )


def test_a_long_record_is_searched_for_what_comes_after_it(folder: Path) -> None:
    long = bytes(range(256)) * 12_000
    with RealDisk(folder) as disk:
        journal = Journal(disk)
        journal.append(long)
        journal.append(b"written with it")
        journal.commit()
        together = disk.size(JOURNAL)
        journal.append(b"written after it")
        journal.commit()
    content = bytearray((folder / JOURNAL).read_bytes())
    content[1000 * SECTOR : 1001 * SECTOR] = bytes(SECTOR)
    (folder / JOURNAL).write_bytes(content)
    with pytest.raises(StateError, match="record 3 at byte 2560 is not whole, and record 5 says"):
        opened(folder)
    (folder / JOURNAL).write_bytes(content[:together])
    assert opened(folder) == [FIRST, SECOND]


def test_a_record_that_calls_itself_safe_is_damage(folder: Path) -> None:
    framed = Header(number=3, safe=3, length=0, checksum=0, mask=0).to_bytes(KEY)
    with (folder / JOURNAL).open("ab") as file:
        file.write(framed.ljust(SECTOR, b"\xff"))
    with pytest.raises(StateError, match="record 3 at byte 2560 calls itself safe"):
        opened(folder)
