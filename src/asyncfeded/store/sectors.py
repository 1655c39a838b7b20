"""Sectors: the 512 bytes that a disk writes whole or not at all.

A sector that a crash kept from the disk reads as zeros, or lies beyond the file's end. What is
written must therefore never look so by itself: a sector with fewer than 16 bits set, which few
flipped bits would turn into zeros, is *sparse*, and its record is written with a word XORed to all
of its words.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from asyncfeded.store.disk import Buffer, Bytes

SECTOR = 512
WORD = np.dtype("<u8")
Words = npt.NDArray[np.uint64]
_WORDS_PER_SECTOR = SECTOR // 8
_FEWEST_BITS = 16
_BLOCK = 2**20
"""Bytes that are masked at once."""


def plain_bytes(buffers: Iterable[Buffer]) -> list[memoryview]:
    """The same memory as bytes; nothing is copied."""
    views = (b.data if isinstance(b, np.ndarray) else memoryview(b) for b in buffers)
    return [view.cast("B") for view in views if view.nbytes]


def padding(size: int) -> int:
    """How many bytes fill up the last sector."""
    return -size % SECTOR


def whole_sectors(pieces: Iterable[Bytes]) -> Iterator[Bytes]:
    """The same bytes in pieces of whole sectors; only sectors on a seam are copied."""
    seam = bytearray()
    for given in pieces:
        piece = memoryview(given)
        if seam:
            missing = SECTOR - len(seam)
            seam += piece[:missing]
            piece = piece[missing:]
            if len(seam) < SECTOR:
                continue
            yield seam
            seam = bytearray()
        whole = len(piece) - len(piece) % SECTOR
        if whole:
            yield piece[:whole]
        seam += piece[whole:]
    assert not seam, "a record fills its last sector"


def has_sparse_sector(pieces: Iterable[Bytes]) -> bool:
    """Whether a sector has so few bits set that it could be taken for one never written."""
    for piece in whole_sectors(pieces):
        # Bits in different places of a word are different bits of the sector.
        places = np.bitwise_or.reduce(_by_sector(piece), axis=1)
        if np.bitwise_count(places).min() < _FEWEST_BITS:
            return True
    return False


def has_empty_sector(content: Bytes) -> bool:
    """Whether a sector is all zero."""
    return not _by_sector(content).any(axis=1).all()


def masked(pieces: Iterable[Bytes], mask: int, start: int) -> Iterator[bytes]:
    """Copy whole sectors with `mask` XORed to every word, but for the first `start` bytes."""
    skipped = start // 8
    for piece in whole_sectors(pieces):
        words = np.frombuffer(piece, WORD)
        for first in range(0, len(words), _BLOCK // 8):
            block = words[first : first + _BLOCK // 8] ^ WORD.type(mask)
            block[:skipped] ^= WORD.type(mask)
            skipped = 0
            yield block.tobytes()


def _by_sector(content: Bytes) -> Words:
    return np.frombuffer(content, WORD).reshape(-1, _WORDS_PER_SECTOR)
