"""A bound on staleness: the Γ of the paper's Assumption 4, as a guard."""

import math

from asyncfeded.core.errors import require
from asyncfeded.core.messages import Refusal
from asyncfeded.core.rule import Arrival, Guard


def bounded_staleness(limit: float) -> Guard:
    """Refuse every update whose staleness γ = ‖x_t − x_base‖ / ‖Δ‖ is above Γ, the `limit`."""
    require(math.isfinite(limit) and limit > 0, "limit", "a finite number above 0", limit)

    def guard(arrival: Arrival) -> Refusal | None:
        staleness = arrival.distance / arrival.delta_norm
        return None if staleness <= limit else Refusal.TOO_STALE

    return guard
