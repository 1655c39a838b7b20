"""How a record and the head of a file look in bytes.

A file is a head of one sector, and records. A record begins on a sector:

    magic     4 bytes
    check     4 bytes     CRC32 of the file's key and of the header after this field
    number    8 bytes     of this record; gapless in a file
    safe      8 bytes     number of the last record that was safe when this one was written
    length    8 bytes     of the content
    checksum  8 bytes     CRC32 of the content
    mask      8 bytes     XORed to every word of the record after the header (`sectors.py`)
    content, and 0xff up to the end of the sector

The key is random and new with every generation: what a record holds cannot pass for a record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import numpy as np

from asyncfeded.store.disk import Bytes
from asyncfeded.store.sectors import SECTOR, WORD, has_sparse_sector, masked, padding

FORMAT = 1
FILE_MAGIC = b"asyncfed"
KEY_BYTES = 8
SNAPSHOT, JOURNAL = b"snapshot", b"journal "
_FILE = Struct("<8sQ8sQQ8s")
_CHECK = Struct("<I")
_MAGIC = b"recd"
_BEGINNING = Struct("<4sI")
_FIELDS = Struct("<QQQQQ")
HEADER = _BEGINNING.size + _FIELDS.size
_FILLING = b"\xff" * SECTOR


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first sector of a file: `number` is that of the last record before this file's."""

    kind: bytes
    generation: int
    number: int
    key: bytes

    def to_bytes(self) -> bytes:
        """As it is written."""
        content = _FILE.pack(FILE_MAGIC, FORMAT, self.kind, self.generation, self.number, self.key)
        content += _CHECK.pack(crc32(content))
        return content + _FILLING[len(content) :]


def format_of(sector: Bytes) -> int | None:
    """The format of a file by its first bytes; None if it is no file of ours."""
    if len(sector) < _FILE.size or bytes(sector[: len(FILE_MAGIC)]) != FILE_MAGIC:
        return None
    return int(_FILE.unpack_from(sector)[1])


def file_head(sector: Bytes) -> FileHead | None:
    """The head of a file of this format; None if it is damaged."""
    if len(sector) != SECTOR:
        return None
    _, _, kind, generation, number, key = _FILE.unpack_from(sector)
    head = FileHead(kind, generation, number, key)
    return head if head.to_bytes() == bytes(sector) else None


class Header(NamedTuple):
    """What a record says of itself."""

    number: int
    safe: int
    length: int
    checksum: int
    mask: int

    @property
    def extent(self) -> int:
        """The bytes of the whole record: header, content and padding."""
        size = HEADER + self.length
        return size + padding(size)

    def to_bytes(self, key: bytes) -> bytes:
        """As it is written to a file with this key."""
        fields = _FIELDS.pack(self.number, self.safe, self.length, self.checksum, self.mask)
        return _BEGINNING.pack(_MAGIC, crc32(fields, crc32(key))) + fields


def header_in(sector: Bytes, key: bytes, start: int = 0) -> Header | None:
    """The header that begins here; None if there is none or if it is damaged."""
    magic, check = _BEGINNING.unpack_from(sector, start)
    fields = bytes(sector[start + _BEGINNING.size : start + HEADER])
    if magic != _MAGIC or check != crc32(fields, crc32(key)):
        return None
    return Header(*_FIELDS.unpack(fields))


def framed(
    content: Sequence[memoryview], number: int, safe: int, key: bytes
) -> Iterator[Sequence[Bytes]]:
    """A record's bytes, in parts to be written one after the other; copied only if masked."""
    length = checksum = 0
    for piece in content:
        length += len(piece)
        checksum = crc32(piece, checksum)
    filling = _FILLING[: padding(HEADER + length)]
    for mask in _masks(key, number):
        header = Header(number, safe, length, checksum, mask).to_bytes(key)
        pieces: list[Bytes] = [header, *content, filling]
        if not mask:
            if not has_sparse_sector(pieces):
                yield pieces
                return
        elif not has_sparse_sector(masked(pieces, mask, HEADER)):
            for part in masked(pieces, mask, HEADER):
                yield [part]
            return


def content_of(header: Header, record: Bytes) -> memoryview | None:
    """The content of a whole record; None if it is not what was written."""
    if header.mask:
        words = np.frombuffer(record, WORD).copy()
        words[HEADER // 8 :] ^= WORD.type(header.mask)
        record = words.data.cast("B")
    end = HEADER + header.length
    content = memoryview(record)[HEADER:end]
    if crc32(content) != header.checksum or record[end:] != _FILLING[: len(record) - end]:
        return None
    return content


def _masks(key: bytes, number: int) -> Iterator[int]:
    """Words to try: none at first, then words that nobody can foresee without the key."""
    yield 0
    attempt = 0
    while True:
        attempt += 1
        digest = blake2b(b"%d %d" % (number, attempt), digest_size=8, key=key).digest()
        yield int.from_bytes(digest, "little") | 1
