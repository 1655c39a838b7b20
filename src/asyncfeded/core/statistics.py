"""The part of a model that is not trained but travels with it: batch-norm statistics, say.

Rules see the trained elements alone. The server moves each statistic s towards the values v_i
that the clients of a step have, with the weights w_i that the rule gave their updates:

    s ← s + Σ w_i · (v_i − s) / max(1, Σ w_i)

Whatever the weights are, this is a mean of s and the v_i. So a statistic never leaves the range of
the values that clients reported: no rule can make a variance negative. A client reports x_base + Δ,
added up in float32. An update that a rule keeps for later counts when the rule takes its next step.

Elements that must stay exact (integers and flags) cannot be averaged: the last client's are taken.
"""

import numpy as np
import numpy.typing as npt

from asyncfeded.core.state import StatisticsState, check, check_vector
from asyncfeded.core.vectors import Vector


class Statistics:
    """What clients have reported since the last step."""

    def __init__(self, size: int, exact: int) -> None:
        self._size = size
        self._averaged = size - exact
        self._weighted_sum: npt.NDArray[np.float64] | None = None
        self._weight = 0.0
        self._latest: Vector | None = None

    def report(self, values: Vector, weight: float) -> None:
        """Count a client's own values with this weight."""
        if weight > 0:
            weighted = np.float64(weight) * values[: self._averaged]
            if self._weighted_sum is not None:
                weighted += self._weighted_sum
            self._weighted_sum = weighted
            self._weight += weight
            self._latest = values

    def moved(self, current: Vector) -> Vector:
        """The statistics after a step, which uses up the reports."""
        moved = current.copy()
        if self._weighted_sum is not None and self._latest is not None:
            total = max(1.0, self._weight)
            kept = (1.0 - self._weight / total) * current[: self._averaged].astype(np.float64)
            moved[: self._averaged] = kept + self._weighted_sum / total
            moved[self._averaged :] = self._latest[self._averaged :]
        self.forget()
        return moved

    def forget(self) -> None:
        """Drop what was reported for a step that could not be taken."""
        self._weighted_sum = None
        self._weight = 0.0
        self._latest = None

    def state(self) -> StatisticsState:
        """The reports as data."""
        return StatisticsState(self._weighted_sum, self._weight, self._latest)

    def restore(self, state: StatisticsState) -> None:
        """Go on with these reports."""
        total = state.weighted_sum
        fits = total is None or (total.dtype == np.float64 and total.shape == (self._averaged,))
        check(fits, "the sum of the clients' statistics has another type or shape")
        check((total is None) == (state.latest is None), "the clients' statistics have a part only")
        check_vector(state.latest, self._size, "the last client's statistics")
        check(state.weight >= 0, f"the clients' statistics have the weight {state.weight}")
        self._weighted_sum, self._weight, self._latest = total, state.weight, state.latest
