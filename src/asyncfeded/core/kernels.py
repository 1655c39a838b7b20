"""The server's loops over parameters, compiled.

Each is one pass over memory, without the interpreter's lock, so that threads can share a long
vector and train beside it. A sum is taken by blocks of fixed size, within a block by lanes (element
i goes to lane i mod LANES), and then over the lanes in order, all in float64. The compiler may
reorder nothing, so a sum has the same bits on every machine and for any number of threads. Lanes do
not wait for each other, so they fill a processor's vectors. Parts are sliced before they are
indexed: an index that counts from 0 needs no check for being negative, which would keep a loop from
being vectorised.

The compiled code is kept on disk, beside the source or in the user's cache folder. If neither can
be read or written, each process compiles it again.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core.caching import FunctionCache

from asyncfeded.core.vectors import Vector

Sums = npt.NDArray[np.float64]

THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
"""How many threads share a long vector: as many as there are cores, or NUMBA_NUM_THREADS."""
BLOCK = 8_192
"""Elements per block: what one block reads stays in a core's cache."""
LANES = 128

Function = TypeVar("Function", bound=Callable[..., object])


class _Cache(FunctionCache):
    """Compiled code on disk; if the disk fails, the code is compiled without it."""

    def load_overload(self, *given: object) -> object:
        """The code on disk; None if there is none or it cannot be read."""
        with suppress(Exception):  # a damaged file raises errors of many kinds
            kept: object = super().load_overload(*given)  # type: ignore[no-untyped-call]
            return kept
        return None

    def save_overload(self, *given: object) -> None:
        """Keep compiled code, unless the disk is full or may not be written to."""
        with suppress(Exception):
            super().save_overload(*given)  # type: ignore[no-untyped-call]


def compiled(function: Function) -> Function:
    """Compile a function when it is first called; it releases the interpreter's lock."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    with suppress(RuntimeError):  # there is no folder for compiled code
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(Function, dispatcher)


def is_on_disk(function: Callable[..., object]) -> bool:
    """Whether the code of a compiled function lies on disk, so that nobody waits for a compiler."""
    kept: Any = function
    with suppress(Exception):  # as in `_Cache`: then the function is compiled again
        return bool(kept._cache._cache_file._load_index())
    return False


@compiled
def block_squares(vector: Vector, first: int, last: int, sums: Sums) -> None:
    """sums[b] ← Σ vector² and 0 for every block b from `first` to before `last`."""
    lanes = np.empty(LANES)
    for block in range(first, last):
        start = block * BLOCK
        stop = min(start + BLOCK, vector.size)
        lanes[:] = 0.0
        while start < stop:
            values = vector[start : min(start + LANES, stop)]
            for lane in range(values.size):
                value = np.float64(values[lane])
                lanes[lane] += value * value
            start += LANES
        total = 0.0
        for lane in range(LANES):
            total += lanes[lane]
        sums[block, 0] = total
        sums[block, 1] = 0.0


@compiled
def block_squares_and_apart(
    vector: Vector, left: Vector, right: Vector, first: int, last: int, sums: Sums
) -> None:
    """sums[b] ← Σ vector² and, in the same pass, Σ (left − right)²."""
    lanes = np.empty(LANES)
    lanes_apart = np.empty(LANES)
    for block in range(first, last):
        start = block * BLOCK
        stop = min(start + BLOCK, vector.size)
        lanes[:] = 0.0
        lanes_apart[:] = 0.0
        while start < stop:
            end = min(start + LANES, stop)
            values, lefts, rights = vector[start:end], left[start:end], right[start:end]
            for lane in range(values.size):
                value = np.float64(values[lane])
                apart = np.float64(lefts[lane] - rights[lane])
                lanes[lane] += value * value
                lanes_apart[lane] += apart * apart
            start += LANES
        total = 0.0
        total_apart = 0.0
        for lane in range(LANES):
            total += lanes[lane]
            total_apart += lanes_apart[lane]
        sums[block, 0] = total
        sums[block, 1] = total_apart


@compiled
def number_of_blocks(size: int) -> int:
    """How many blocks a vector of this size has."""
    return (size + BLOCK - 1) // BLOCK


@compiled
def in_order(sums: Sums) -> tuple[float, float]:
    """Both columns of the blocks' sums, added up block by block."""
    total = 0.0
    total_apart = 0.0
    for block in range(sums.shape[0]):
        total += sums[block, 0]
        total_apart += sums[block, 1]
    return total, total_apart


@compiled
def squares(vector: Vector) -> float:
    """Σ vector², all blocks at once."""
    sums = np.empty((number_of_blocks(vector.size), 2))
    block_squares(vector, 0, sums.shape[0], sums)
    return in_order(sums)[0]


@compiled
def squares_and_apart(vector: Vector, left: Vector, right: Vector) -> tuple[float, float]:
    """Σ vector² and Σ (left − right)², all blocks at once."""
    sums = np.empty((number_of_blocks(vector.size), 2))
    block_squares_and_apart(vector, left, right, 0, sums.shape[0], sums)
    return in_order(sums)


@compiled
def block_step(
    start: Vector, scale: float, direction: Vector, out: Vector, first: int, last: int
) -> bool:
    """Out ← start + scale · direction in float32 for these blocks; returns whether it is finite."""
    factor = np.float32(scale)
    part = slice(first * BLOCK, min(last * BLOCK, out.size))
    starts, directions, outs = start[part], direction[part], out[part]
    broken = False
    for index in range(outs.size):
        value = starts[index] + factor * directions[index]
        outs[index] = value
        broken |= not np.isfinite(value)
    return not broken


@compiled
def step(start: Vector, scale: float, direction: Vector, out: Vector) -> bool:
    """Out ← start + scale · direction in float32; returns whether all of it is finite."""
    return block_step(start, scale, direction, out, 0, number_of_blocks(out.size))


@compiled
def block_mix(
    start: Vector, weight: float, base: Vector, delta: Vector, out: Vector, first: int, last: int
) -> bool:
    """Out ← start + weight · ((base + delta) − start) in float32; returns whether it is finite."""
    factor = np.float32(weight)
    part = slice(first * BLOCK, min(last * BLOCK, out.size))
    starts, bases, deltas, outs = start[part], base[part], delta[part], out[part]
    broken = False
    for index in range(outs.size):
        apart = (bases[index] + deltas[index]) - starts[index]
        value = starts[index] + factor * apart
        outs[index] = value
        broken |= not np.isfinite(value)
    return not broken


@compiled
def block_add_weighted(
    total: Sums, weight: float, vector: Vector, out: Sums, first: int, last: int
) -> None:
    """Out ← total + weight · vector in float64."""
    part = slice(first * BLOCK, min(last * BLOCK, out.size))
    totals, values, outs = total[part], vector[part], out[part]
    for index in range(outs.size):
        outs[index] = totals[index] + weight * np.float64(values[index])
