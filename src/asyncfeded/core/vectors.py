"""Flat float32 vectors and the few operations the server needs on them.

An update of the server is two passes over memory: one for both norms, one for the step. Long
vectors are shared out to threads by whole blocks, which changes no bit (see `kernels`).
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from asyncfeded.late import Late

if TYPE_CHECKING:
    from asyncfeded.core import kernels
else:
    kernels = Late("asyncfeded.core.kernels", globals(), "kernels")

__all__ = [
    "Vector",
    "Vector64",
    "add_scaled",
    "add_weighted",
    "all_finite",
    "mix",
    "norm",
    "norm_and_distance",
    "read_only",
    "share_out",
]

Outcome = TypeVar("Outcome")

Vector = npt.NDArray[np.float32]
Vector64 = npt.NDArray[np.float64]

FLOAT32 = np.dtype(np.float32)
SHARED_FROM = 2_000_000
"""Elements from which it is worth starting threads."""


def norm(vector: Vector, threads: int | None = None) -> float:
    """‖vector‖, accumulated in float64 in a fixed order; not finite if an element is not."""
    vector = np.ascontiguousarray(vector)
    if _is_short(vector.size, threads):
        return math.sqrt(kernels.squares(vector))
    sums = np.empty((kernels.number_of_blocks(vector.size), 2))
    _on_threads(lambda i, j: kernels.block_squares(vector, i, j, sums), len(sums), threads)
    return math.sqrt(kernels.in_order(sums)[0])


def norm_and_distance(
    delta: Vector, current: Vector, base: Vector, threads: int | None = None
) -> tuple[float, float]:
    """‖delta‖ and ‖current − base‖ in one pass; the differences are float32.

    Only the first elements of the other two count, as many as `delta` has.
    """
    assert min(current.size, base.size) >= delta.size
    delta = np.ascontiguousarray(delta)
    if _is_short(delta.size, threads):
        squares, squares_apart = kernels.squares_and_apart(delta, current, base)
    else:
        sums = np.empty((kernels.number_of_blocks(delta.size), 2))
        _on_threads(
            lambda i, j: kernels.block_squares_and_apart(delta, current, base, i, j, sums),
            len(sums),
            threads,
        )
        squares, squares_apart = kernels.in_order(sums)
    if math.isfinite(squares_apart):
        return math.sqrt(squares), math.sqrt(squares_apart)
    # Finite elements can lie further apart than float32 reaches; their halves cannot.
    half = np.float32(0.5)
    length, half_apart = norm_and_distance(delta, current * half, base * half, threads)
    return length, 2.0 * half_apart


def add_scaled(
    start: Vector, scale: float, direction: Vector, out: Vector, threads: int | None = None
) -> bool:
    """Out ← start + scale · direction in float32; returns whether all of it is finite."""
    assert start.size == direction.size == out.size
    direction = np.ascontiguousarray(direction, dtype=FLOAT32)
    if _is_short(out.size, threads):
        return kernels.step(start, scale, direction, out)
    return all(
        _on_threads(
            lambda i, j: kernels.block_step(start, scale, direction, out, i, j),
            kernels.number_of_blocks(out.size),
            threads,
        )
    )


def mix(
    start: Vector,
    weight: float,
    base: Vector,
    delta: Vector,
    out: Vector,
    threads: int | None = None,
) -> bool:
    """Out ← start + weight · ((base + delta) − start) in float32; returns whether it is finite.

    Only the first elements of `base` and `delta` count, as many as `out` has.
    """
    assert start.size == out.size <= min(base.size, delta.size)
    delta = np.ascontiguousarray(delta, dtype=FLOAT32)
    blocks = kernels.number_of_blocks(out.size)
    if _is_short(out.size, threads):
        return kernels.block_mix(start, weight, base, delta, out, 0, blocks)
    return all(
        _on_threads(
            lambda i, j: kernels.block_mix(start, weight, base, delta, out, i, j), blocks, threads
        )
    )


def add_weighted(
    total: Vector64, weight: float, vector: Vector, threads: int | None = None
) -> Vector64:
    """Total + weight · vector in float64, in memory of its own."""
    out = np.empty(total.size)
    share_out(
        lambda i, j: kernels.block_add_weighted(total, weight, vector, out, i, j),
        total.size,
        kernels.number_of_blocks(total.size),
        threads,
    )
    return out


def all_finite(vector: Vector) -> bool:
    """Whether no element is NaN or infinite."""
    return bool(np.isfinite(vector).all())


def read_only(vector: Vector) -> Vector:
    """The same memory as a view that cannot be written to."""
    view = vector.view()
    view.setflags(write=False)
    return view


def share_out(
    work: Callable[[int, int], object], size: int, parts: int, threads: int | None = None
) -> None:
    """Call `work(first, last)` for all of so many parts of a vector, on threads if it is long."""
    if _is_short(size, threads):
        work(0, parts)
    else:
        _on_threads(work, parts, threads)


def _is_short(size: int, threads: int | None) -> bool:
    """Whether threads would take longer to start than they save."""
    return size < SHARED_FROM or (threads or kernels.THREADS) == 1


def _on_threads(
    work: Callable[[int, int], Outcome], parts: int, threads: int | None
) -> list[Outcome]:
    """Call `work(first, last)` on threads, each for the parts from `first` to before `last`.

    They work in the caller's context: what NumPy is told to do about an overflow stands there.
    """
    threads = threads or kernels.THREADS
    borders = [parts * part // threads for part in range(threads + 1)]
    # Threads of this call alone: those of a lasting pool would not survive a fork.
    with ThreadPoolExecutor(threads) as pool:
        futures = [
            pool.submit(copy_context().run, work, first, last) for first, last in pairwise(borders)
        ]
        return [future.result() for future in futures]
