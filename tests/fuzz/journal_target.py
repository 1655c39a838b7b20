"""A folder of a journal whose files were changed: opened without a loss, or refused.

An input is a list of changes: what is done, in which of the two files, where, and with which bytes.
"""

from collections.abc import Iterator
from struct import Struct

from asyncfeded.store.frame import HEADER, Header
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import SECTOR
from faults.chance import Chance
from faults.simulated_disk import SimulatedDisk

FILES = ("snapshot-000001.bin", "journal-000001.log")
KEY = b"12345678"
RECORDS = [b"first", bytes(range(256)) * 4, b"third"]
_CHANGE = Struct("<BHB")
OVERWRITE, CUT, EMPTY_SECTOR, FLIP, DELETE, APPEND, FRAMED = range(7)
_FIELDS = Struct("<QQQQQ")


def read_changed(content: bytes) -> None:
    """What opens has the records that were written, up to one that may be torn; it goes on."""
    disk = _disk()
    believable = _change(disk, content)
    journal = Journal(disk)
    found = [bytes(record) for _, record in journal.records()] if not journal.is_new else []
    if journal.is_new:
        journal.snapshot(b"a new one")
    elif believable:
        assert bytes(journal.read_snapshot()) == b"state"
        assert found == RECORDS[: len(found)], "a record was changed"
    journal.append(b"another")
    journal.commit()
    again = Journal(disk)
    assert [bytes(record) for _, record in again.records()] == [*found, b"another"]


def changes() -> Iterator[bytes]:
    yield b""
    yield _change_of(OVERWRITE, 1, 600, b"xyz")
    yield _change_of(CUT, 1, 1700)
    yield _change_of(EMPTY_SECTOR, 1, 3) + _change_of(FLIP, 0, 7)
    yield _change_of(DELETE, 0, 0)
    yield _change_of(APPEND, 1, 0, b"\xff" * 200)
    yield _change_of(FRAMED, 1, 0, _FIELDS.pack(4, 2, 0, 0, 0))
    yield _change_of(FRAMED, 0, 512, _FIELDS.pack(0, 0, 2**40, 0, 0))


def _change_of(what: int, file: int, place: int, content: bytes = b"") -> bytes:
    return _CHANGE.pack(what + 16 * file, place, len(content)) + content


def _disk() -> SimulatedDisk:
    disk = SimulatedDisk(Chance(0, {}))
    journal = Journal(disk, lambda _: KEY)
    journal.snapshot(b"state")
    for record in RECORDS:
        journal.append(record)
        journal.commit()
    return disk


def _change(disk: SimulatedDisk, content: bytes) -> bool:
    """Carry out the changes; False if a header was written that only a journal could have."""
    believable = True
    while len(content) >= _CHANGE.size:
        first, place, length = _CHANGE.unpack_from(content)
        data, content = content[_CHANGE.size :][:length], content[_CHANGE.size + length :]
        what, name = first % 16, FILES[first // 16 % 2]
        if name not in disk.names():
            continue
        place = min(place, disk.size(name))
        if what == OVERWRITE:
            disk.rewrite(name, place, data)
        elif what == CUT:
            disk.cut(name, place)
        elif what == EMPTY_SECTOR:
            place = min(place % 8 * SECTOR, disk.size(name))
            disk.rewrite(name, place, bytes(SECTOR))
        elif what == FLIP and place < disk.size(name):
            byte = bytes(disk.read(name, place, 1))[0]
            disk.rewrite(name, place, bytes([byte ^ 1 << length % 8]))
        elif what == DELETE:
            disk.delete(name)
        elif what == APPEND:
            disk.append(name, [data])
        elif what == FRAMED:
            fields = _FIELDS.unpack(data[: _FIELDS.size].ljust(_FIELDS.size, b"\0"))
            header = Header(*fields).to_bytes(KEY) + data[_FIELDS.size :]
            place = place if place < disk.size(name) else disk.size(name)
            disk.rewrite(name, place, header.ljust(SECTOR, b"\xff"))
            believable = False
    assert 8 + _FIELDS.size == HEADER
    return believable
