"""The events of a run, as values: progress, log, results and plots are made from them."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncfeded.core.messages import Receipt
from asyncfeded.core.metrics import ACCURACY, LOSS


@dataclass(frozen=True, slots=True)
class Started:
    """The server is ready; nobody has joined yet."""

    seconds: float
    rule: str
    parameters_sha256: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """An earlier process had begun the run; this one goes on with it."""

    seconds: float
    rule: str
    version: int


@dataclass(frozen=True, slots=True)
class Joined:
    """A client takes part from this version on."""

    seconds: float
    client_id: str
    version: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Received:
    """The server has answered an update; the `receipt` says whether it was accepted."""

    seconds: float
    round: int | None
    base_version: int | None
    epochs: int | None
    receipt: Receipt
    num_examples: int | None = None
    held_seconds: float | None = None
    """How long the client held its task, if the world measures time."""


@dataclass(frozen=True, slots=True)
class RoundLost:
    """A client's update never came; it goes on with a fresh task, waits for others, or is away."""

    seconds: float
    client_id: str
    round: int
    reason: str
    version: int
    """The server's version after the loss, which may have ended a synchronous round."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A client that has reported rests; its `successor` works from this version on."""

    seconds: float
    client_id: str
    successor: str
    version: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Left:
    """A client has left; `reason` says how it was lost, if it did not leave by itself."""

    seconds: float
    client_id: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing has arrived for a while: these clients are at work.

    With a `barrier`, the round of a synchronous rule waits for them.
    """

    seconds: float
    silent_seconds: float
    clients: tuple[str, ...]
    barrier: bool


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The model of this version was measured on the test data."""

    seconds: float
    version: int
    metrics: Mapping[str, float]
    """The measurements by name: accuracy, if the task has it, loss, and the user's own."""

    @property
    def accuracy(self) -> float | None:
        """The share of right answers; None if the task has none."""
        return self.metrics.get(ACCURACY)

    @property
    def loss(self) -> float | None:
        """The mean loss."""
        return self.metrics.get(LOSS)


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over: at its end, or because a callback stopped it, which `stopped_by` names."""

    seconds: float
    version: int
    parameters_sha256: str
    stopped_by: str | None = None


Event = (
    Started
    | Resumed
    | Joined
    | Received
    | RoundLost
    | Replaced
    | Left
    | Waiting
    | Evaluated
    | Finished
)
