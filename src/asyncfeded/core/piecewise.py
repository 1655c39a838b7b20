"""NumPy's arithmetic on long vectors at the speed of memory.

NumPy carries out `a + b * c` one operation at a time, and each writes a whole vector that the next
one reads again. If the vectors are taken in pieces, what is between the operations stays in the
processor's cache, and threads can share the pieces.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from asyncfeded.core.vectors import share_out

Arrays = TypeVar("Arrays")

PIECE = 32_768
"""Elements per piece: few enough for a core's cache, and so many that Python's part is small."""


def piecewise(
    function: Callable[..., Arrays], *vectors: npt.NDArray[Any], threads: int | None = None
) -> Arrays:
    """function(*vectors), which may treat each element by itself only, and the same bits.

    The function returns a new vector, or a tuple of new vectors.

    Examples:
        >>> import numpy as np
        >>> moment, update = np.zeros(3), np.array([1, 2, 3], np.float32)
        >>> piecewise(lambda m, delta: 0.9 * m + delta, moment, update).tolist()
        [1.0, 2.0, 3.0]
    """
    size = vectors[0].size
    if size <= PIECE:
        return function(*vectors)
    sample = function(*(vector[:1] for vector in vectors))
    is_tuple = isinstance(sample, tuple)
    outs = [np.empty(size, part.dtype) for part in _parts(sample)]

    def fill(first: int, last: int) -> None:
        for start in range(first * PIECE, min(last * PIECE, size), PIECE):
            piece = slice(start, min(start + PIECE, size))
            results = _parts(function(*(vector[piece] for vector in vectors)))
            for out, result in zip(outs, results, strict=True):
                out[piece] = result

    share_out(fill, size, -(-size // PIECE), threads)
    return cast(Arrays, tuple(outs) if is_tuple else outs[0])


def _parts(results: object) -> tuple[npt.NDArray[Any], ...]:
    return results if isinstance(results, tuple) else (cast(npt.NDArray[Any], results),)
