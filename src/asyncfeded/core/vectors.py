"""Flat float32 vectors and the few operations the server needs on them.

Sums are taken in float64 over blocks of fixed size, block by block in order. NumPy adds within
a block in an order that depends on its length alone, so a norm has the same bits on every
machine, for any number of threads.
"""

import math
import threading

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]

BLOCK = 8_192
"""Elements per block: the scratch memory for one stays in a core's cache."""


class _Scratch(threading.local):
    """Memory for one block, touched once and used for every norm of a thread."""

    def __init__(self) -> None:
        self.squares = np.zeros(BLOCK, dtype=np.float64)
        self.difference = np.zeros(BLOCK, dtype=np.float32)


_scratch = _Scratch()


def norm(vector: Vector) -> float:
    """‖vector‖, accumulated in float64 in a fixed order; not finite if an element is not."""
    total = 0.0
    for start in range(0, vector.size, BLOCK):
        total += _sum_of_squares(vector[start : start + BLOCK])
    return math.sqrt(total)


def distance(left: Vector, right: Vector) -> float:
    """‖left − right‖: float32 differences, accumulated in float64 in a fixed order."""
    total = 0.0
    with np.errstate(over="ignore"):
        for start in range(0, left.size, BLOCK):
            block = left[start : start + BLOCK]
            apart = _scratch.difference[: block.size]
            np.subtract(block, right[start : start + BLOCK], out=apart)
            total += _sum_of_squares(apart)
    if math.isfinite(total):
        return math.sqrt(total)
    # Finite elements can lie further apart than float32 reaches; their halves cannot.
    half = np.float32(0.5)
    return 2.0 * distance(left * half, right * half)


def _sum_of_squares(block: Vector) -> float:
    squares = _scratch.squares[: block.size]
    np.copyto(squares, block)
    np.multiply(squares, squares, out=squares)
    return float(np.add.reduce(squares))


def add_scaled(start: Vector, scale: float, direction: Vector, out: Vector) -> None:
    """Out ← start + scale · direction in float32; `out` may not overlap the other two."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(direction, np.float32(scale), out=out)
        np.add(start, out, out=out)


def all_finite(vector: Vector) -> bool:
    """Whether no element is NaN or infinite."""
    return bool(np.isfinite(vector).all())


def read_only(vector: Vector) -> Vector:
    """The same memory as a view that cannot be written to."""
    view = vector.view()
    view.flags.writeable = False
    return view
