"""One vector per client, and their sum, at the cost of one vector per change.

The sum is in float64. A change adds the new vector and subtracts the old one. A vector that is much
larger than the others would leave its rounding error behind when it goes. So after as many changes
as there are clients the sum is added up anew, in alphabetical order of the clients: spread over the
changes, that costs one vector for each.
"""

from typing import TypedDict

import numpy as np

from asyncfeded.core.persistent import PersistentMap
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.vectors import Vector, Vector64, add_weighted


class ClientVectors(TypedDict):
    """The vectors by client, their sum, and the number of changes since it was added up anew."""

    vectors: PersistentMap[Vector]
    sum: Vector64
    changes: int


def no_vectors(size: int) -> ClientVectors:
    """Begin without any client."""
    return {"vectors": PersistentMap(), "sum": np.zeros(size), "changes": 0}


def with_vector(kept: ClientVectors, client_id: str, vector: Vector) -> ClientVectors:
    """Replace a client's vector by a copy of this one."""
    total = replaced(kept["sum"], kept["vectors"].get(client_id), vector)
    return _counted(kept["vectors"].set(client_id, vector.copy()), total, kept["changes"])


def without_vector(kept: ClientVectors, client_id: str) -> ClientVectors:
    """Take a client's vector out, if there is one."""
    if client_id not in kept["vectors"]:
        return kept
    total = add_weighted(kept["sum"], -1.0, kept["vectors"][client_id])
    return _counted(kept["vectors"].without(client_id), total, kept["changes"])


def replaced(total: Vector64, old: Vector | None, new: Vector) -> Vector64:
    """The sum with a client's new vector instead of its old one, if it had one."""
    if old is None:
        return add_weighted(total, 1.0, new)
    return piecewise(lambda total, old, new: total + new - old, total, old, new)


def _counted(vectors: PersistentMap[Vector], total: Vector64, changes: int) -> ClientVectors:
    changes += 1
    if changes >= len(vectors):
        zeros = np.zeros(total.size)
        total, changes = piecewise(_added_up, zeros, *vectors.values()), 0
    return {"vectors": vectors, "sum": total, "changes": changes}


def _added_up(total: Vector64, *vectors: Vector) -> Vector64:
    for vector in vectors:
        total = total + vector
    return total
