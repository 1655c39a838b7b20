"""What the server and its clients say to each other. Every message is frozen.

Messages that the server makes for every update are named tuples. A frozen dataclass takes five
times as long to make: as long as the arithmetic of a small model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from asyncfeded.core.vectors import Vector

NO_FIGURES: Mapping[str, float] = MappingProxyType({})


class TrainTask(NamedTuple):
    """Train from these parameters for this many local epochs.

    `parameters` is read-only. `round` counts the tasks of this client from 0. A client sends it
    back with its update, so that the server recognises a duplicate for certain. Without it, an
    update is a duplicate if its version and norm are those of the last update, to the bit.
    """

    client_id: str
    version: int
    parameters: Vector
    epochs: int
    round: int = 0
    proximal_mu: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientUpdate:
    """What a client learned: its model after training minus the version it started from.

    `steps` is the number of mini-batches that the client trained on. `figures` holds its other
    measurements by name: `loss` is its mean training loss. Both are optional.
    """

    client_id: str
    version: int
    delta: Vector
    num_examples: int
    epochs: int
    round: int | None = None
    steps: int | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


Train = Callable[[TrainTask], ClientUpdate]
"""A client's training, as every transport sees it."""


class Refusal(StrEnum):
    """Why the server refused an update."""

    UNKNOWN_CLIENT = "unknown_client"
    """No client of that name takes part."""
    DUPLICATE = "duplicate"
    """The client has answered this task already."""
    VERSION_NOT_HELD = "version_not_held"
    """The client does not hold this version: it never got it, or has given it back."""
    WRONG_TYPE = "wrong_type"
    """The delta is no 1-D float32 array, a count no whole number, or a figure no number."""
    WRONG_LENGTH = "wrong_length"
    """The delta has more or fewer elements than the model."""
    OUT_OF_RANGE = "out_of_range"
    """The number of examples, epochs or steps is below 1 or above 2^53."""
    NOT_FINITE = "not_finite"
    """The delta has a NaN or an infinity."""
    ZERO_DELTA = "zero_delta"
    """The delta is zero: there is nothing to add."""
    TOO_STALE = "too_stale"
    """The staleness is above the bound Γ."""
    STEP_NOT_FINITE = "step_not_finite"
    """A norm, the server's learning rate or the new model would be NaN or infinite."""


PROTOCOL_FAULTS = (Refusal.DUPLICATE, Refusal.VERSION_NOT_HELD)
"""After these refusals a client keeps the task that it has."""


class Receipt(NamedTuple):
    """The server's answer to an update.

    `accepted` says whether the rule took the update, `version` is the server's version after it.
    `next_task` is what the client does next; it is None while the client waits for a
    synchronous round to end, and for an unknown client. `other_tasks` are for the clients that
    waited for this update. `figures` holds the numbers that the rule records, by name.
    """

    client_id: str
    accepted: bool
    version: int
    reason: Refusal | None = None
    lag: int | None = None
    delta_norm: float | None = None
    figures: Mapping[str, float] = NO_FIGURES
    next_task: TrainTask | None = None
    other_tasks: tuple[TrainTask, ...] = ()

    @property
    def staleness(self) -> float | None:
        """γ of Eq. 6; None if the rule does not measure it."""
        return self.figures.get("staleness")

    @property
    def learning_rate(self) -> float | None:
        """The server's learning rate for this update; None if the rule has none."""
        return self.figures.get("learning_rate")

    @property
    def tasks(self) -> tuple[TrainTask, ...]:
        """All tasks to send now, the client's own first."""
        own = () if self.next_task is None else (self.next_task,)
        return own + self.other_tasks
