"""An asynchronous simulation in words that fit every tool, and what a tool's adapter gives.

Every tool that simulates asynchronous training has an adapter, a module with `simulation(work)`:
`engine_simulation` for this project, `appfl_simulation` and `flgo_simulation` for the peers.
Everything here needs torch alone, because the peers' environments do not have this project.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from peer_rounds.workload import BATCH, CLIENTS, LEARNING_RATE, MODELS, MOMENTUM, STEPS, client_data

Tool = Literal["engine", "appfl", "flgo"]
Rule = Literal["fedasync-constant", "fedasync-polynomial", "fedasync-hinge", "fedbuff"]


@dataclass(frozen=True)
class Work:
    """What is simulated; times are in whole units, because FLGo's clock counts these.

    `alpha`, `a` and `b` are FedAsync's, `buffer_size` is FedBuff's M. With `constant`, a round adds
    this to every parameter in place of training.
    """

    make_module: Callable[[], nn.Module]
    data_of: Callable[[int], tuple[Tensor, Tensor]]
    clients: int
    at_work: int
    units_of: Callable[[int], int]
    """How long a round of this client takes."""
    rule: Rule = "fedasync-constant"
    alpha: float = 0.1
    a: float = 0.5
    b: float = 5.0
    buffer_size: int = 10
    batch_size: int = BATCH
    steps: int = STEPS
    learning_rate: float = LEARNING_RATE
    momentum: float = MOMENTUM
    shuffles: bool = True
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy
    constant: float | None = None
    workers: int = 1
    """How many train; only this project's engine has more than one."""
    compiled: bool = False
    """Train by compiled code; only this project's engine has it."""

    def batches(self, x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """One pass in mini-batches, gathered from memory."""
        order = torch.randperm(len(y)) if self.shuffles else torch.arange(len(y))
        for places in torch.split(order, self.batch_size):
            yield x[places], y[places]


class UnavailableError(Exception):
    """A tool has no such thing for this work; the message says why."""


class Arrived(NamedTuple):
    """When updates arrived at a server, and whose they were: more than one only in FLGo."""

    units: float
    clients: tuple[int, ...]


class Simulation(Protocol):
    """A run of a tool that goes on for as long as it is asked to."""

    def updates(self, count: int) -> int:
        """Go on until at least so many more updates have arrived; say how many have."""

    def next_arrival(self) -> Arrived:
        """Go on until the next update has arrived."""

    def parameters(self) -> Tensor:
        """The server's parameters now, as one vector."""


def begin(tool: Tool, work: Work) -> Simulation:
    """Begin a simulation in a tool, which must be installed here."""
    simulation: Simulation = import_module(f"peer_rounds.{tool}_simulation").simulation(work)
    return simulation


def mixed_speed(client: int) -> int:
    """The clients' speeds: a round takes 10 to 48 units, the slowest client almost five times."""
    return 10 + 2 * (client % CLIENTS)


def race_work(workload: str, rule: Rule, workers: int = 1, compiled: bool = False) -> Work:
    """The work of a race: all clients train at their own speeds."""
    return Work(
        MODELS[workload],
        lambda client: client_data(workload, client),
        CLIENTS,
        CLIENTS,
        mixed_speed,
        rule,
        workers=workers,
        compiled=compiled,
    )
