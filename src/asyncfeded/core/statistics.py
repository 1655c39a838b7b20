"""The part of a model that is not trained but travels with it: batch-norm statistics, say."""

from asyncfeded.core.vectors import Vector, read_only


def with_current_statistics(
    delta: Vector, base: Vector, statistics: Vector, current: Vector
) -> tuple[Vector, Vector]:
    """Express what an update says of statistics, at the end of the vector, by the current model.

    `statistics` are those that the client started from. base + Δ stays the client's own value, so
    that any rule's step of weight w ≤ 1 gives (1 − w) · current + w · client's, instead of adding
    a stale difference. An empty `base` stays empty.
    """
    tail = slice(-statistics.size, None)
    delta, base = delta.copy(), base.copy()
    delta[tail] += statistics - current[tail]
    if base.size:
        base[tail] = current[tail]
    return delta, read_only(base)
