"""What being away does to a round.

`later`: the rest of the round waits until the client is back. Nobody else notices but by the delay:

    there    ██████████████            ███████████████████
    task ──download──train┄┄┄ away ┄┄┄┄┄train──upload──▶ update, and the next task

`lose`: the round is lost when the client goes. It leaves the federation and joins again:

    there    ██████████████            ███████████████████
    task ──download──train✗            join: fresh task, same K ──download──train──…

Where a selection says who is at work, a client that goes gives its place to another, and rests.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from asyncfeded.availability.availability import Availability
from asyncfeded.runtime.devices import Devices, RoundTime
from asyncfeded.runtime.membership import Membership, Presence
from asyncfeded.runtime.selection import Selection
from asyncfeded.runtime.transport import AWAY


def while_there(
    devices: Devices,
    availability: Availability | None,
    seconds: float,
    selection: Selection | None = None,
) -> Devices:
    """These devices with this availability, in a run that ends at `seconds`."""
    if availability is None:
        return devices
    if availability.when_away == "later":
        return WaitsWhileAway(devices, availability, seconds)
    return devices if selection is None else LosesWhileAway(devices, availability)


class Attendance(NamedTuple):
    """Who takes part, and when: memberships, and a presence that cuts them into stays."""

    memberships: Sequence[Membership]
    presence: Presence | None = None


def attendance(
    memberships: Sequence[Membership],
    availability: Availability | None,
    selection: Selection | None = None,
) -> Attendance:
    """Who takes part with this availability."""
    if availability is None:
        return Attendance(memberships)
    if availability.when_away == "lose" and selection is None:
        return Attendance(memberships, availability)
    return Attendance(joined_when_there(availability, memberships))


def joined_when_there(presence: Presence, memberships: Sequence[Membership]) -> list[Membership]:
    """The memberships from when their clients are first there; without those who never are."""
    found = []
    for membership in memberships:
        there = presence.upcoming(membership.client_id, membership.join_seconds)
        if there is not None and there.start < membership.leave_seconds:
            joins = max(membership.join_seconds, there.start)
            found.append(replace(membership, join_seconds=joins))
    return found


class WaitsWhileAway:
    """Devices whose clients go on with a round when they are back, in a run until `seconds`."""

    def __init__(self, devices: Devices, presence: Presence, seconds: float) -> None:
        self._devices = devices
        self._presence = presence
        self._seconds = seconds

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        """The time of a round, with the time that the client is away in it.

        Training begins when the client is there; what it waits for that is told as `hangs`.
        """
        there = self._presence.upcoming(client_id, begins)
        if there is None or there.start > self._seconds:
            return NEVER
        start = max(begins, there.start)
        time = self._devices.round_time(client_id, round_number, epochs, num_bytes, start)
        if not time.total >= 0:  # nor NaN; the transport refuses it
            return time
        if start == begins and start + time.total <= there.end:
            return time
        taken = dict.fromkeys(("download", "hangs", "compute", "upload"), 0.0)
        now = begins
        for part in _IN_ORDER[time.lost]:
            if part == "compute":
                trains = self._back(client_id, now)
                if trains > self._seconds:
                    return NEVER
                taken["hangs"] += trains - now
                now = trains
            ends = self._after(client_id, now, getattr(time, part))
            if ends > self._seconds:
                return NEVER
            taken[part] += ends - now
            now = ends
        return RoundTime(**taken, lost=time.lost, reason=time.reason)

    def _back(self, client_id: str, seconds: float) -> float:
        """This time if the client is there, or when it is back."""
        there = self._presence.upcoming(client_id, seconds)
        return inf if there is None else max(seconds, there.start)

    def _after(self, client_id: str, start: float, amount: float) -> float:
        """When a client has been there for this long."""
        while amount > 0:
            there = self._presence.upcoming(client_id, start)
            if there is None or there.start > self._seconds:
                return inf
            start = max(start, there.start)
            if amount <= there.end - start:
                return start + amount
            amount -= there.end - start
            start = there.end
        return start


class LosesWhileAway:
    """Devices whose clients lose the round in the middle of which they go.

    A round begins when its client is there.
    """

    def __init__(self, devices: Devices, presence: Presence) -> None:
        self._devices = devices
        self._presence = presence

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        """The time of a round or, if it is lost, the time until its client goes."""
        there = self._presence.upcoming(client_id, begins)
        if there is None:
            return NEVER
        start = max(begins, there.start)
        time = self._devices.round_time(client_id, round_number, epochs, num_bytes, start)
        if not time.total >= 0:  # nor NaN; the transport refuses it
            return time
        if start + time.total < there.end:
            return time._replace(hangs=time.hangs + (start - begins))
        return RoundTime(0.0, there.end - begins, 0.0, 0.0, lost=True, reason=AWAY)


NEVER = RoundTime(0.0, inf, 0.0, 0.0)
"""A round that does not end within the run."""

_IN_ORDER = {
    False: ("download", "hangs", "compute", "upload"),
    True: ("download", "compute", "upload", "hangs"),
}
"""The parts of a round that arrives, and of a round that is lost."""
