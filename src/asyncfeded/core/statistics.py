"""The part of a model that is not trained but travels with it: batch-norm statistics, say."""

from asyncfeded.core.vectors import Vector


def relative_to_current(
    delta: Vector, base: Vector, current: Vector, trained: int
) -> tuple[Vector, Vector]:
    """Express the statistics of an update, behind the `trained` elements, by the current model.

    base + Δ stays the client's own value, so that any rule's step of weight w ≤ 1 gives
    (1 − w) · current + w · client's, instead of adding a stale difference.
    """
    delta, base = delta.copy(), base.copy()
    statistics = slice(trained, None)
    delta[statistics] += base[statistics] - current[statistics]
    base[statistics] = current[statistics]
    return delta, base
