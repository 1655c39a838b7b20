"""The contract of an aggregation rule, documented here and nowhere else.

The rule decides, the server acts. A rule is a value: its name and a few pure functions that close
over its hyperparameters. They use no clock, no randomness and no I/O, and do not change their
arguments: the same arguments give the same result, to the bit.

`init(parameters)` makes the rule's first state from the initial model.

`on_update(state, arrival)` is called for every update that has passed validation. It returns a
`Decision`: the rule's next state, the work of that client's next round, and a step on the model,
or no step if the update is kept for later.

`on_round_end(state)` is optional and makes a rule synchronous. Clients that have reported wait.
When all clients have reported or left, the server calls it once and sends everybody the new
version. Without it, every client gets its next task at once.

`on_leave(state, client_id)` is optional. The server calls it when a client leaves the federation,
and it returns the next state. A client that only rests has not left. The state may hold nothing
about the client, and the server may make the call for several states.

This is a whole rule, server momentum v ← β·v + Δ, x ← x + v.

Examples:
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
    ...     update = ClientUpdate("client-7", task.version, delta, 120, task.epochs)
    ...     task = server.receive(update).next_task
    >>> server.parameters.tolist()  # 1, then 1 + 1.5, then 2.5 + 1.75
    [4.25, 8.5]

Who owns what:

- A rule sees the elements that are trained, and nothing else: `parameters`, the vectors of an
  arrival and the direction of a step have one element for each. Statistics such as those of batch
  normalisation belong to the server (see `core/statistics`).
- The vectors of an arrival can be read only while `on_update` runs: copy what you keep.
- The state is a tree of arrays, numbers, texts, None and mappings from texts to these, so that it
  can be saved and restored. Never change a state that you have returned: make new arrays.
- The server takes no step that is not finite. It refuses the update or the round that brought the
  step, and goes back to the state after the last step that it took: whatever the rule has kept
  since then may have spoiled the step. If the next step is not finite either, `init` makes a new
  state.
- Keep one vector per client in a `PersistentMap`: setting an entry takes the same time for any
  number of clients, and the old state stays as it was.

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

    `epochs` is the paper's K, at least 1. It may be a fraction; a client runs its floor.
    `proximal_mu` pulls the client's training towards the version it started from.
    """

    epochs: float
    proximal_mu: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.epochs) and self.epochs >= 1):
            raise RuleError(f"a rule must ask for at least 1 epoch; it asked for {self.epochs}")


class Arrival(NamedTuple):
    """A valid update as a rule sees it.

    `delta` is the update Δ, `base` the version it started from, `current` the model x_t now, and
    `lag` the number of versions between the two. `work` is the work that the client was given.
    `delta_norm` is ‖Δ‖ > 0 and `distance` ‖x_t − x_base‖. `base` is empty if the server keeps
    sketches instead of versions.

    `clients_at_work` is the number of clients that hold a task, this one included, and `clients`
    the number of clients in the federation. `steps` is the number of mini-batches that the client
    trained on, or K if the client does not report it. `held_seconds` is the time from the sending
    of the task to the arrival of the update, if the transport measures time. `reported` holds the
    client's own figures, unchecked: its training `loss`, for example.
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
    """What a rule decides about an arrival: its next state, the client's next work, and a step.

    `step` is None for an update that is kept for later. `figures` go into the receipt and the log.
    `weight` says how much of the client's own statistics to take over: 1 is all of them. If several
    updates make one step, each counts in proportion. The default is the step's scale, or `mix`, at
    most 1; for an update that is kept for later, it is 1. `mix=α`, instead of a step, moves the
    model towards the client's: x_{t+1} = x_t + α · (x_base + Δ − x_t), in one pass over memory.
    """

    state: State
    work: Work
    step: Step | None = None
    figures: Mapping[str, float] = NO_FIGURES
    weight: float | None = None
    mix: float | None = None


class RoundEnd(NamedTuple, Generic[State]):
    """What a synchronous rule decides when its round is complete: its next state, and a step."""

    state: State
    step: Step | None


def no_state(_: Vector) -> None:
    """Make the state of a rule that has none."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[State]):
    """An aggregation rule: its name, the work of a first round, and its functions.

    The contract of the functions stands at the top of `core/rule.py`. `reads_base=False` promises
    that the rule never reads an arrival's `base`; the server can then keep sketches instead of
    versions. `needs_seconds=True` asks for a transport that measures how long a client held its
    task. `settings` are the hyperparameters by name; the decorator `hyperparameters` fills them in.
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
