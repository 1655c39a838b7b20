"""The contract of an aggregation rule, documented here and nowhere else.

The rule decides, the server acts. A rule is a value: its name and a few pure functions that close
over its hyperparameters. They have no clock, no randomness and no I/O, and change nothing that they
are given: the same arguments give the same result, to the bit.

`init(parameters)` makes the rule's first state from the initial model.

`on_update(state, arrival)` is called for every update that has passed validation. It returns a
`Decision`: the rule's next state, the work of that client's next round, and a step on the model,
or no step if the update is kept for later.

`on_round_end(state)`, where there is one, makes a rule synchronous. The server lets every client
that has reported wait, calls it once when all clients have reported or left, and sends everybody
the new version. Without it a client is sent on at once.

`on_leave(state, client_id)`, where there is one, is told that a client leaves the federation, and
returns the next state. A client that only rests has not left. The state may know nothing of the
client, and the call may be made for more than one state.

This is a whole rule, server momentum v ← β·v + Δ, x ← x + v:

>>> import numpy as np
>>> from asyncfeded import ClientUpdate, Decision, Rule, Server, Step, Work
>>> def momentum(beta=0.5):
...     def init(parameters):
...         return {"velocity": np.zeros_like(parameters)}
...
...     def on_update(state, arrival):
...         velocity = beta * state["velocity"] + arrival.delta
...         return Decision({"velocity": velocity}, arrival.work, Step(1.0, velocity))
...
...     return Rule("momentum", Work(epochs=1), init, on_update)
>>> server = Server(np.zeros(2, np.float32), momentum())
>>> task = server.join("client-7")
>>> for _ in range(3):
...     delta = np.array([1, 2], np.float32)
...     receipt = server.receive(ClientUpdate("client-7", task.version, delta, 120, task.epochs))
...     task = receipt.next_task
>>> server.parameters.tolist()  # 1, then 1 + 1.5, then 2.5 + 1.75
[4.25, 8.5]

Who owns what:

- A rule sees the elements that are trained, and nothing else: `parameters`, the vectors of an
  arrival and the direction of a step have one element for each. Statistics such as those of batch
  normalisation belong to the server (see `core/statistics`).
- The vectors of an arrival can be read while `on_update` runs, and no longer: copy what you keep.
- The state is a tree of arrays, numbers, texts, None and mappings from texts to these, so that it
  can be saved and restored. The server holds the newest state. A state that was returned is never
  changed: make new arrays. A step that is not finite is not taken: the update or the round that
  brought it is refused, and the server goes on with the state after the last step that was taken.
  What was kept since then is dropped, as any of it may have spoiled the step. If the next step is
  not finite either, `init` makes a new state.
- For one vector per client, keep them in a `PersistentMap`: setting an entry takes the same time
  for any number of clients, and the old state stays as it was.

A new rule is one file in `rules/` with a factory whose keyword arguments are its hyperparameters,
one row in `rules.REGISTRY`, which also puts it through the contract tests, and one test with
numbers worked by hand.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

    `delta` is the update Δ, `base` the version it started from, `current` the model x_t now, and
    `lag` the number of versions between the two. `work` is what the client had been given.
    `delta_norm` is ‖Δ‖ > 0 and `distance` ‖x_t − x_base‖. `base` is empty where the server keeps
    sketches instead of versions.

    `clients_at_work` is the number of clients that hold a task, this one included, and `clients`
    the number of clients in the federation. `steps` is the number of mini-batches that the client
    trained on; K, if it did not say. `held_seconds` is the time from the sending of the task to the
    arrival of the update, if the transport measures time. `reported` holds the client's own
    figures, unchecked: its training `loss`, for example.
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
    clients_at_work: int = 1
    clients: int = 1
    steps: int = 1
    held_seconds: float | None = None
    reported: Mapping[str, float] = NO_FIGURES


class Step(NamedTuple):
    """x_{t+1} = x_t + scale · direction."""

    scale: float
    direction: Vector


class Decision(NamedTuple, Generic[State]):
    """What a rule wants done about an arrival; `figures` go into the receipt and the log.

    `weight` says how much of the client's own statistics to take over: 1 is all of them, and of
    several updates that make one step each counts in proportion. By default it is the step's scale,
    at most 1; for an update that is kept for later, 1.
    """

    state: State
    work: Work
    step: Step | None = None
    figures: Mapping[str, float] = NO_FIGURES
    weight: float | None = None


class RoundEnd(NamedTuple, Generic[State]):
    """What a synchronous rule wants done when its round is complete."""

    state: State
    step: Step | None


def no_state(_: Vector) -> None:
    """Make the state of a rule that has none."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[State]):
    """An aggregation rule: see the top of this file.

    `reads_base=False` promises that the rule never looks at an arrival's `base`, which lets a
    server that is short of memory keep sketches instead of versions. `needs_seconds=True` asks for
    a transport that measures how long a client held its task. `settings` are the hyperparameters,
    by name; `core.hyperparameters` fills them in.
    """

    name: str
    first_work: Work
    init: Callable[[Vector], State]
    on_update: Callable[[State, Arrival], Decision[State]]
    on_round_end: Callable[[State], RoundEnd[State]] | None = None
    on_leave: Callable[[State, str], State] | None = None
    reads_base: bool = True
    needs_seconds: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


AnyRule = Rule[Any]

Guard = Callable[[Arrival], Refusal | None]
"""Why an arrival may not reach the rule; None if it may."""
