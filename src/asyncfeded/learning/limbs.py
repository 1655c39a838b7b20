"""Integers in a float32 vector: 16 bits at a time, lowest first, each an unsigned number.

A float32 element holds such a number exactly, and the difference of two of them, too.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded.core.vectors import Vector


def to_limbs(values: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger]:
    """The bits of integers or booleans, 16 (or all 8) at a time."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(np.uint8 if flat.itemsize == 1 else np.uint16)


def from_limbs(limbs: Vector, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The integers or booleans again."""
    if dtype == np.bool_:
        return np.not_equal(limbs, 0)
    unsigned: npt.NDArray[Any]
    unsigned = limbs.astype(np.uint8 if dtype.itemsize == 1 else np.uint16)
    integers: npt.NDArray[Any] = unsigned.view(dtype)
    return integers
