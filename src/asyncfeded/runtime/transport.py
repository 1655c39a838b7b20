"""The seam between the loop and a world: the next signal of a client, and its time."""

from dataclasses import dataclass
from typing import Protocol

from asyncfeded.core.clients import check_name
from asyncfeded.core.messages import ClientUpdate, TrainTask

SUSPENDED = "suspended"
"""Why a round was lost: its client hung."""
AWAY = "away"
"""Why a round was lost: its client went away in the middle of it, and comes back later."""
REJOINED = "rejoined"
"""Why a round was lost: its client began anew without having left."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A client asks to take part. If it takes part already, it has begun anew."""

    seconds: float
    client_id: str

    def __post_init__(self) -> None:
        check_name(self.client_id)


@dataclass(frozen=True, slots=True)
class Arriving:
    """A client's update has come in, `held_seconds` after the client was sent its task."""

    seconds: float
    update: ClientUpdate
    held_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Losing:
    """A client's update will not come; the client asks for another task.

    If the client is not in this round, this comes too late and means nothing.
    """

    seconds: float
    client_id: str
    round: int
    reason: str = SUSPENDED


@dataclass(frozen=True, slots=True)
class Leaving:
    """A client goes, for good or until it joins again.

    `reason` says how it was lost, if it did not leave by itself. `lost_round` is the round that it
    loses because it is away for a while.
    """

    seconds: float
    client_id: str
    reason: str | None = None
    lost_round: int | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """No client has sent a signal for this long."""

    seconds: float
    silent_seconds: float


Signal = Joining | Arriving | Losing | Leaving | Quiet


class Transport(Protocol):
    """Carries tasks to clients and brings back their signals, in the order of its time.

    A network may deliver what a client says late, twice or never: server and loop bear all of it.
    """

    def send(self, task: TrainTask) -> None:
        """Give a client its task."""

    def next_signal(self) -> Signal | None:
        """Wait for the next signal; None when the run is over."""

    def close(self) -> None:
        """Tell the clients to stop and free what the transport holds."""
