"""The part of a model that is not trained but travels with it: batch-norm statistics, say."""

from asyncfeded.core.vectors import Vector


def relative_to(current: Vector, base: Vector, delta: Vector) -> Vector:
    """Express the statistics of an update, a delta against `base`, by the current model.

    current + Δ is then the client's own value, so that any rule's step of weight w ≤ 1 gives
    (1 − w) · current + w · client's, instead of adding a stale difference.
    """
    return delta + (base - current)
