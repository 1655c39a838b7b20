"""Flat float32 vectors and the few operations the server needs on them.

Sums are taken in float64 over blocks of fixed size, block by block in order. NumPy adds within
a block in an order that depends on its length alone, so a norm has the same bits on every
machine, for any number of threads.
"""

import math

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]

BLOCK = 16_384
"""Elements per block: its float64 scratch (128 KiB) stays in a core's cache."""


def norm(vector: Vector) -> float:
    """‖vector‖, accumulated in float64 in a fixed order."""
    scratch = np.empty(min(BLOCK, vector.size), dtype=np.float64)
    total = 0.0
    for start in range(0, vector.size, BLOCK):
        block = vector[start : start + BLOCK]
        total += _sum_of_squares(block, None, scratch[: block.size])
    return math.sqrt(total)


def distance(left: Vector, right: Vector) -> float:
    """‖left − right‖, differences and sums in float64 in a fixed order."""
    scratch = np.empty(min(BLOCK, left.size), dtype=np.float64)
    total = 0.0
    for start in range(0, left.size, BLOCK):
        block = left[start : start + BLOCK]
        total += _sum_of_squares(block, right[start : start + BLOCK], scratch[: block.size])
    return math.sqrt(total)


def _sum_of_squares(
    block: Vector, subtract: Vector | None, scratch: npt.NDArray[np.float64]
) -> float:
    if subtract is None:
        np.copyto(scratch, block)
    else:
        np.subtract(block, subtract, out=scratch, dtype=np.float64)
    np.multiply(scratch, scratch, out=scratch)
    return float(np.add.reduce(scratch))


def add_scaled(start: Vector, scale: float, direction: Vector, out: Vector) -> None:
    """Out ← start + scale · direction in float32; `out` may not overlap the other two."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(direction, np.float32(scale), out=out)
        np.add(start, out, out=out)


def all_finite(vector: Vector) -> bool:
    """Whether no element is NaN or infinite."""
    return bool(np.isfinite(vector).all())
