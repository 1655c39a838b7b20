"""Reading what a journal wrote, and telling a crash from damage.

A crash leaves a *torn* record at a file's end: sectors of it read as zeros, or lie beyond the end.
It was never acknowledged, and is cut off. Everything else that does not fit is damage, and is
refused: what was acknowledged may be lost. A torn record is damage too if a later record says
that it was safe.
"""

from collections.abc import Iterator
from typing import NamedTuple

from asyncfeded.core.errors import StateError
from asyncfeded.store.disk import Bytes, Disk
from asyncfeded.store.frame import (
    FORMAT,
    HEADER,
    FileHead,
    content_of,
    file_head,
    format_of,
    header_in,
)
from asyncfeded.store.sectors import SECTOR, has_empty_sector

_READ_AT_ONCE = 2**20
_READ_FIRST = 2**12
"""A small record is read at once, with its header."""
_EMPTY = bytes(SECTOR)


class Record(NamedTuple):
    """A record that is whole; `safe` is the last record that was safe when it was written."""

    number: int
    safe: int
    start: int
    written: Bytes
    content: memoryview

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.start + len(self.written)


def damaged(disk: Disk, name: str, problem: str) -> StateError:
    """Say of a file that it must not be believed."""
    return StateError(
        f"{str(disk.folder / name)!r} is damaged: {problem}; put back a copy of the folder "
        f"{str(disk.folder)!r}, or begin in a new one"
    )


def read_head(disk: Disk, name: str, kind: bytes, generation: int) -> FileHead:
    """Read the head of a file that must be of this kind and generation."""
    sector = disk.read(name, 0, SECTOR)
    found = format_of(sector)
    if found is None:
        raise damaged(disk, name, "it does not begin as a journal's file does")
    if found != FORMAT:
        raise StateError(
            f"{str(disk.folder / name)!r} is of format {found}; this version of asyncfeded reads "
            f"format {FORMAT}: use the version that wrote it"
        )
    head = file_head(sector)
    if head is None or head.kind != kind or head.generation != generation:
        raise damaged(disk, name, "its first 512 bytes are not as they were written")
    return head


def read_snapshot(disk: Disk, name: str, head: FileHead) -> memoryview:
    """Read the one record of a snapshot, which was whole before it got its name."""
    size = disk.size(name)
    record = _record(disk, name, head, head.number, SECTOR, size) if size > SECTOR else None
    if record is None or record.end != size:
        raise damaged(disk, name, f"its {size} bytes are not those that were written")
    return record.content


def read_records(disk: Disk, name: str, head: FileHead) -> Iterator[Record]:
    """Read the records of a journal up to its end, or up to a torn record."""
    return read_records_from(disk, name, head, head.number + 1, SECTOR)


def read_records_from(
    disk: Disk, name: str, head: FileHead, number: int, start: int
) -> Iterator[Record]:
    """Read the records from this one on, which begins at `start`."""
    size = disk.size(name)
    while start < size:
        record = _record(disk, name, head, number, start, size)
        if record is None:
            _check_that_it_was_not_safe(disk, name, head, number, start, size)
            return
        if record.safe >= number:
            raise damaged(disk, name, f"record {number} at byte {start} calls itself safe")
        yield record
        start, number = record.end, number + 1


def _record(
    disk: Disk, name: str, head: FileHead, number: int, start: int, size: int
) -> Record | None:
    """The record that begins here; None if it is torn."""
    block = disk.read(name, start, _READ_FIRST)
    sector = block[:SECTOR]
    if len(sector) < SECTOR or sector == _EMPTY:
        return None
    header = header_in(sector, head.key)
    if header is None or header.number != number:
        raise damaged(disk, name, f"at byte {start} there is not the header of record {number}")
    end = start + header.extent
    if end > size:
        return None
    extent = header.extent
    record = block[:extent] if extent <= len(block) else disk.read(name, start, extent)
    # A header that was read twice is checked twice: the record may be written again as it was read.
    content = content_of(header, record) if record[:HEADER] == sector[:HEADER] else None
    if content is not None:
        return Record(number, header.safe, start, record, content)
    if has_empty_sector(record):
        return None
    raise damaged(disk, name, f"the checksum of record {number} at byte {start} does not match")


def _check_that_it_was_not_safe(
    disk: Disk, name: str, head: FileHead, number: int, start: int, size: int
) -> None:
    """Refuse a torn record if any later record was written when this one was safe."""
    for at in range(start + SECTOR, size - SECTOR + 1, _READ_AT_ONCE):
        block = disk.read(name, at, min(_READ_AT_ONCE, size - at))
        for offset in range(0, len(block) - SECTOR + 1, SECTOR):
            later = header_in(block, head.key, offset)
            if later is not None and later.number > number and later.safe >= number:
                raise damaged(
                    disk,
                    name,
                    f"record {number} at byte {start} is not whole, and record {later.number} "
                    "says that it was",
                )
