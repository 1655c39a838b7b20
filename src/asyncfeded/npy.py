"""The header of an array in NumPy's own format, from bytes that others may have written."""

import struct
from math import prod
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np

PLAIN = "biufSU"
"""Numbers and texts of NumPy; everything else would have to be unpickled."""
_UNREADABLE = (
    *(ValueError, TypeError, KeyError, SyntaxError, EOFError, RecursionError, MemoryError),
    *(struct.error, TokenError, OverflowError),
)


class Header(NamedTuple):
    """What follows the header: `size` bytes of this shape and type, columns first if `fortran`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int


def read_header(file: IO[bytes]) -> Header:
    """Read the header, which may lie: compare `size` with the bytes that are there.

    What is no header of plain numbers or texts is a ValueError. Nothing is unpickled.
    """
    try:
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[np.lib.format.read_magic(file)]
        shape, fortran, dtype = read(file)
    except _UNREADABLE as error:
        raise ValueError(f"no array of NumPy: {error!r:.100}") from None
    if dtype.kind not in PLAIN or dtype.itemsize == 0 or any(n < 0 for n in shape):
        raise ValueError("not plain numbers")
    return Header(shape, fortran, dtype, prod(shape) * dtype.itemsize)
