"""Sectors are never such that one could be taken for a sector that was not written."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfeded.store.frame import HEADER, content_of, framed, header_in
from asyncfeded.store.sectors import SECTOR, has_empty_sector, plain_bytes, whole_sectors

KEY = b"01234567"
ONE_BIT = bytes(700) + b"\x01" + bytes(900)
PIECES = st.lists(
    st.one_of(
        st.binary(max_size=50),
        st.integers(0, 2000).map(bytes),
        st.integers(0, 2000).map(np.random.default_rng(0).bytes),
    ),
    max_size=6,
)


def written(pieces: list[bytes]) -> bytes:
    parts = framed(plain_bytes(pieces), 5, 3, KEY)
    return b"".join(piece for part in parts for piece in part)


@given(PIECES)
def test_a_record_comes_back_from_whole_sectors_that_are_not_empty(pieces: list[bytes]) -> None:
    record = written(pieces)
    assert len(record) % SECTOR == 0
    assert not has_empty_sector(record)
    header = header_in(record, KEY)
    assert header is not None
    assert (header.number, header.safe, header.extent) == (5, 3, len(record))
    content = content_of(header, record)
    assert content is not None
    assert bytes(content) == b"".join(pieces)


@pytest.mark.parametrize("content", [bytes(5000), ONE_BIT, np.ones(200, np.int64).tobytes()])
def test_no_three_flipped_bits_can_empty_a_sector(content: bytes) -> None:
    record = np.frombuffer(written([content]), np.uint8).reshape(-1, SECTOR)
    assert np.bitwise_count(record).sum(axis=1).min() > 3


def test_dense_content_is_not_copied() -> None:
    vector = np.random.default_rng(1).normal(size=10_000).astype(np.float32)
    ((header, content, filling),) = framed(plain_bytes([vector]), 1, 0, KEY)
    assert len(header) == HEADER
    assert np.shares_memory(np.asarray(content), vector)
    assert bytes(filling) == b"\xff" * (-(HEADER + vector.nbytes) % SECTOR)


@given(st.lists(st.integers(0, 1500), max_size=8))
def test_pieces_become_whole_sectors_in_the_same_order(sizes: list[int]) -> None:
    random = np.random.default_rng(2)
    pieces = [random.bytes(size) for size in [*sizes, -sum(sizes) % SECTOR]]
    parts: Iterator[bytes] = map(bytes, whole_sectors(pieces))
    joined = list(parts)
    assert all(len(part) % SECTOR == 0 for part in joined)
    assert b"".join(joined) == b"".join(pieces)


def test_a_header_is_that_of_its_own_file_only() -> None:
    record = written([b"x"])
    assert header_in(record, KEY) is not None
    assert header_in(record, b"another!") is None
