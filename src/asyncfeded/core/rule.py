"""The contract of an aggregation rule, documented here and nowhere else.

The rule decides, the server acts. A rule is a value: its name, its settings, and one or two pure
functions that close over its hyperparameters.

`on_update(state, arrival)` is called for every update that has passed validation. It returns a
`Decision`: the rule's next state, the work of that client's next round, and a step on the model,
or no step if the update is kept for later. It mutates nothing it is given, has no clock, no
randomness and no I/O: the same arguments give the same decision, to the bit.

`on_round_end(state)` makes a rule synchronous. The server then lets every client that has
reported wait, calls it once when all that take part have reported or left, and sends everybody
the new version. Without it (None) a client is sent on at once.

A new rule is one file in `rules/` with a factory whose keyword arguments are its
hyperparameters, one row in `rules.REGISTRY`, which also puts it through the contract tests, and
one test with numbers worked by hand.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Generic, NamedTuple, TypeVar

from asyncfeded.core.errors import RuleError
from asyncfeded.core.messages import NO_FIGURES, Refusal
from asyncfeded.core.vectors import Vector

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Work:
    """What a client does in a round.

    `epochs` (the paper's K, at least 1) may be fractional between rounds; a client runs its
    floor. `proximal_mu` pulls the client's training towards the version it started from.
    """

    epochs: float
    proximal_mu: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.epochs) and self.epochs >= 1):
            raise RuleError(f"a rule must ask for at least 1 epoch; it asked for {self.epochs}")


class Arrival(NamedTuple):
    """A valid update as a rule sees it.

    `delta` is the update Δ, `base` the version it started from, `current` the model x_t now,
    `lag` how many versions lie between the two. `work` is what the client had been given.
    `delta_norm` is ‖Δ‖ > 0 and `distance` ‖x_t − x_base‖. Norms are taken over the first
    `trained` elements, which an optimizer trains; the rest (batch-norm statistics, say) travel
    with the model. Where the server keeps sketches in the place of versions, `base` is empty.
    """

    client_id: str
    delta: Vector
    base: Vector
    current: Vector
    lag: int
    num_examples: int
    work: Work
    delta_norm: float
    distance: float
    trained: int


class Step(NamedTuple):
    """x_{t+1} = x_t + scale · direction."""

    scale: float
    direction: Vector


class Decision(NamedTuple, Generic[State]):
    """What a rule wants done about an arrival; `figures` go into the receipt and the log."""

    state: State
    work: Work
    step: Step | None = None
    figures: Mapping[str, float] = NO_FIGURES


class RoundEnd(NamedTuple, Generic[State]):
    """What a synchronous rule wants done when its round is complete."""

    state: State
    step: Step | None


@dataclass(frozen=True, slots=True)
class Rule(Generic[State]):
    """An aggregation rule: see the top of this file.

    `reads_base=False` promises that the rule never looks at an arrival's `base`, which lets a
    server that is short of memory keep sketches in the place of versions.
    """

    name: str
    settings: Mapping[str, Any]
    first_work: Work
    initial_state: State
    on_update: Callable[[State, Arrival], Decision[State]]
    on_round_end: Callable[[State], RoundEnd[State]] | None = None
    reads_base: bool = True


AnyRule = Rule[Any]
AnyDecision = Decision[Any]

Guard = Callable[[Arrival], Refusal | None]
"""Why an arrival may not reach the rule; None if it may."""
