"""The seam between the loop and a world: who has something to say next, and at what time."""

from dataclasses import dataclass
from typing import Protocol

from asyncfeded.core.messages import ClientUpdate, TrainTask

SUSPENDED = "suspended"
"""Why a round was lost: its client hung."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A client asks to take part."""

    seconds: float
    client_id: str


@dataclass(frozen=True, slots=True)
class Arriving:
    """A client's update has come in, `held_seconds` after the client was sent its task."""

    seconds: float
    update: ClientUpdate
    held_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Losing:
    """A client's round has come to nothing: its update will not come, and it asks for another."""

    seconds: float
    client_id: str
    round: int
    reason: str = SUSPENDED


@dataclass(frozen=True, slots=True)
class Leaving:
    """A client goes, for good or, if it was lost for this reason, until it joins again."""

    seconds: float
    client_id: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nobody has said anything for this long."""

    seconds: float
    silent_seconds: float


Signal = Joining | Arriving | Losing | Leaving | Quiet


class Transport(Protocol):
    """Carries tasks to clients and brings back what they say, in the order of its time."""

    def send(self, task: TrainTask) -> None:
        """Give a client its task."""

    def next_signal(self) -> Signal | None:
        """Wait for the next signal; None when the run is over."""

    def close(self) -> None:
        """Tell the clients to stop and free what the transport holds."""
