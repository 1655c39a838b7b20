"""Count sketches: short vectors that still tell the distances of the long ones.

Moses Charikar, Kevin Chen, Martin Farach-Colton: Finding Frequent Items in Data Streams, 2002.

    S(x)_b = Σ_{i : h(i) = b} s(i) · x_i,      s(i) = ±1,      E ‖S(x)‖² = ‖x‖²

S is linear, so ‖S(x) − S(y)‖ estimates ‖x − y‖ for any two vectors that were sketched apart. The
variance of the square is at most 2/B · ‖x − y‖⁴ with B buckets: the distance is off by about
1/√(2B) of itself (1.1 % for 4,096 buckets, 0.28 % for 65,536), whatever the vectors, unless they
were chosen with the hash in view.

Here i = c · B + j goes to bucket (j + r_c) mod B with a rotation r_c per stretch c of B elements.
Two elements meet with a probability of at most 1/B, as with a hash per element, but memory is
read and written in order.
"""

import math

import numpy as np
import numpy.typing as npt

from asyncfeded.core.kernels import compiled
from asyncfeded.core.vectors import Vector

Sketch = npt.NDArray[np.float64]


@compiled
def _mix(number: np.uint32) -> np.uint32:
    """32 bits that look random for every number."""
    number = np.uint32(number * np.uint32(0x9E3779B1) + np.uint32(0x7F4A7C15))
    number = np.uint32((number ^ (number >> np.uint32(15))) * np.uint32(0x85EBCA77))
    number = np.uint32((number ^ (number >> np.uint32(13))) * np.uint32(0xC2B2AE3D))
    return np.uint32(number ^ (number >> np.uint32(16)))


@compiled
def _add_signed(values: Vector, place: int, buckets: Sketch) -> None:
    """buckets[k] += s(place + k) · values[k]."""
    for index in range(values.size):
        flip = _mix(np.uint32(place + index)) >> np.uint32(31)
        buckets[index] += np.float64(values[index]) * (1.0 - 2.0 * np.float64(flip))


@compiled
def _fill(vector: Vector, buckets: Sketch) -> None:
    """Add a vector to the buckets, stretch by stretch."""
    width = buckets.size
    for stretch in range((vector.size + width - 1) // width):
        start = stretch * width
        stop = min(start + width, vector.size)
        rotation = int(_mix(np.uint32(~stretch))) % width
        middle = min(start + width - rotation, stop)
        _add_signed(vector[start:middle], start, buckets[rotation:])
        _add_signed(vector[middle:stop], middle, buckets)


def sketch(vector: Vector, buckets: int) -> Sketch:
    """S(vector), in float64 and in a fixed order."""
    filled = np.zeros(buckets)
    _fill(np.ascontiguousarray(vector), filled)
    return filled


def distance(left: Sketch, right: Sketch) -> float:
    """An estimate of ‖x − y‖ from S(x) and S(y)."""
    apart = left - right
    return math.sqrt(float(np.add.reduce(apart * apart)))
