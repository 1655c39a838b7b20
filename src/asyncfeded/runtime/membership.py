"""Who takes part in a run, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from asyncfeded.core.errors import SettingError, require


@dataclass(frozen=True, slots=True)
class Membership:
    """When a client joins and, unless it stays, leaves for good."""

    client_id: str
    join_seconds: float = 0.0
    leave_seconds: float = inf

    def __post_init__(self) -> None:
        joins, leaves = self.join_seconds, self.leave_seconds
        require(isfinite(joins) and joins >= 0, "join_seconds", "at least 0", joins)
        require(leaves > joins, "leave_seconds", f"after the client joins at {joins}", leaves)


def check_memberships(memberships: Sequence[Membership]) -> None:
    """Refuse a client that occurs twice."""
    names = [membership.client_id for membership in memberships]
    if len(set(names)) < len(names):
        raise SettingError("clients must have different ids; one is given twice")
