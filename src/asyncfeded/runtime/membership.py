"""Who takes part in a run, and when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple, Protocol

from asyncfeded.core.errors import SettingError, require


@dataclass(frozen=True, slots=True)
class Membership:
    """When a client joins and, unless it stays, leaves.

    A client may have several. When it joins again, it goes on with its K and its rounds.
    """

    client_id: str
    join_seconds: float = 0.0
    leave_seconds: float = inf

    def __post_init__(self) -> None:
        joins, leaves = self.join_seconds, self.leave_seconds
        require(isfinite(joins) and joins >= 0, "join_seconds", "at least 0", joins)
        require(leaves > joins, "leave_seconds", f"after the client joins at {joins}", leaves)


class Period(NamedTuple):
    """A time in which a client is there: `start` belongs to it, `end` does not."""

    start: float
    end: float


class Presence(Protocol):
    """When each client is there, and when it is away."""

    def upcoming(self, client_id: str, seconds: float) -> Period | None:
        """The period around this time or, if the client is away, the next; None if none is left.

        Its end lies after `seconds`.
        """


class Stay(NamedTuple):
    """One time in which a client takes part; `returns` if it goes only because it is away."""

    client_id: str
    joins: float
    leaves: float
    returns: bool


class Stays:
    """The times in which clients take part: their memberships, without the time they are away."""

    def __init__(self, memberships: Sequence[Membership], presence: Presence | None = None) -> None:
        self._presence = presence
        self._memberships: dict[str, list[Membership]] = {}
        for membership in memberships:
            self._memberships.setdefault(membership.client_id, []).append(membership)
        for own in self._memberships.values():
            own.sort(key=lambda membership: membership.join_seconds)
            _check_apart(own)

    def __len__(self) -> int:
        return len(self._memberships)

    @property
    def clients(self) -> Sequence[str]:
        """Everybody who has a membership, in the order of these."""
        return list(self._memberships)

    def __iter__(self) -> Iterator[Stay]:
        """The first stay of every client that has one, in the order of the memberships."""
        return (stay for name in self._memberships if (stay := self.after(name, 0.0)) is not None)

    def after(self, client_id: str, seconds: float) -> Stay | None:
        """The first stay of a client that begins at this time or later; None if there is none."""
        for membership in self._memberships[client_id]:
            begins, ends = max(seconds, membership.join_seconds), membership.leave_seconds
            if begins >= ends:
                continue
            if self._presence is None:
                return Stay(client_id, begins, ends, returns=False)
            there = self._presence.upcoming(client_id, begins)
            if there is None:
                return None
            joins = max(begins, there.start)
            if joins < ends:
                return Stay(client_id, joins, min(there.end, ends), returns=there.end < ends)
        return None


def _check_apart(memberships: Sequence[Membership]) -> None:
    """Refuse a client that would take part twice at once."""
    for earlier, later in pairwise(memberships):
        if later.join_seconds < earlier.leave_seconds:
            spans = " and ".join(
                f"{one.join_seconds:g} to {one.leave_seconds:g}" for one in (earlier, later)
            )
            raise SettingError(
                f"memberships of client {later.client_id!r} must not overlap; given {spans}"
            )
