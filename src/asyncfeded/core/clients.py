"""What the server knows about its clients."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from asyncfeded.core.errors import ClientStateError, RuleError, require
from asyncfeded.core.messages import ClientUpdate, Refusal, TrainTask
from asyncfeded.core.rule import Work
from asyncfeded.core.state import NONE_YET, ClientsState, check, check_column, counts, floats
from asyncfeded.core.validation import are_counts


@dataclass(slots=True)
class ClientRecord:
    """A client that takes part.

    `work` is its work in the next round, `task` the task that it holds (None while it waits for a
    synchronous round to end). `last_taken` and `last_delta_norm` are the base and the norm of its
    last accepted update.
    """

    work: Work
    next_round: int = 0
    task: TrainTask | None = None
    last_taken: int | None = None
    last_delta_norm: float | None = None


class Clients:
    """The clients of a federation: those that take part, rest or have left.

    A client that rests has given its place to another, and still belongs to the federation. A
    client that has left does not; if it returns, it goes on with its K and its rounds.
    """

    def __init__(self, first_work: Work, population: int | None = None) -> None:
        known = population is None or (are_counts(population) and population >= 0)
        require(known, "population", "a whole number, at least 0", population)
        self._first_work = first_work
        self._population = population
        self._taking_part: dict[str, ClientRecord] = {}
        self._resting: dict[str, ClientRecord] = {}
        self._left: dict[str, ClientRecord] = {}
        self.size = 0
        """How many clients take part, rest or, if the population is known, have not joined yet."""

    def __contains__(self, client_id: object) -> bool:
        return client_id in self._taking_part

    def __iter__(self) -> Iterator[str]:
        return iter(self._taking_part)

    def items(self) -> Iterator[tuple[str, ClientRecord]]:
        """The clients that take part, in the order in which they joined."""
        return iter(self._taking_part.items())

    def find(self, client_id: object) -> ClientRecord | None:
        """The client of this name; None if it does not take part."""
        return self._taking_part.get(client_id) if isinstance(client_id, str) else None

    def join(self, client_id: str) -> ClientRecord:
        """Let a client take part."""
        check_name(client_id)
        if client_id in self._taking_part:
            raise ClientStateError(
                f"client {client_id!r} takes part already; let it leave before it joins again"
            )
        client = self._resting.pop(client_id, None) or self._left.pop(client_id, None)
        client = ClientRecord(self._first_work) if client is None else client
        self._taking_part[client_id] = client
        self._count()
        return client

    def check_leave(self, client_id: str) -> None:
        """Refuse the leave of a client that neither takes part nor rests."""
        if client_id not in self._taking_part and client_id not in self._resting:
            raise ClientStateError(f"client {client_id!r} does not take part and cannot leave")

    def leave(self, client_id: str) -> ClientRecord:
        """Let a client leave that takes part or rests."""
        here = self._taking_part if client_id in self._taking_part else self._resting
        client = self._left[client_id] = here.pop(client_id)
        self._count()
        return client

    def rest(self, client_id: str) -> ClientRecord:
        """Let a client rest that takes part."""
        client = self._resting[client_id] = self._taking_part.pop(client_id)
        self._count()
        return client

    def state(self) -> ClientsState:
        """Every client as data."""
        groups = (self._taking_part, self._resting, self._left)
        records = list(chain.from_iterable(group.values() for group in groups))
        tasks = (client.task for client in records)
        return ClientsState(
            names=list(chain.from_iterable(groups)),
            taking_part=len(self._taking_part),
            resting=len(self._resting),
            population=self._population,
            epochs=floats(client.work.epochs for client in records),
            proximal_mu=floats(client.work.proximal_mu for client in records),
            next_round=counts(client.next_round for client in records),
            task_version=counts(None if task is None else task.version for task in tasks),
            last_taken=counts(client.last_taken for client in records),
            last_delta_norm=floats(client.last_delta_norm for client in records),
        )

    def restore(self, state: ClientsState) -> dict[str, int]:
        """Take in the clients of a state; returns the versions of the tasks that they hold."""
        names, rows = state.names, len(state.names)
        check(len(set(names)) == rows and all(names), "a client has no name, or another's")
        here, resting = state.taking_part, state.resting
        check(here >= 0 and resting >= 0 and here + resting <= rows, "clients are missing")
        for name in ("epochs", "proximal_mu", "last_delta_norm"):
            check_column(getattr(state, name), np.float64, rows, name)
        for name in ("next_round", "task_version", "last_taken"):
            check_column(getattr(state, name), np.int64, rows, name)
            check(bool((getattr(state, name) >= NONE_YET).all()), f"{name} is negative")
        check(bool((state.task_version[here:] == NONE_YET).all()), "a client at rest has a task")
        held: dict[str, int] = {}
        columns = (
            state.epochs,
            state.proximal_mu,
            state.next_round,
            state.task_version,
            state.last_taken,
            state.last_delta_norm,
        )
        for place, (name, *row) in enumerate(
            zip(names, *(column.tolist() for column in columns), strict=True)
        ):
            epochs, proximal_mu, next_round, version, taken, norm = row
            try:
                work = Work(epochs, proximal_mu)
            except RuleError as error:
                check(False, f"client {name!r}: {error}")
            last_taken = None if taken == NONE_YET else taken
            last_norm = None if math.isnan(norm) else norm
            group = self._taking_part if place < here else self._resting
            group = group if place < here + resting else self._left
            group[name] = ClientRecord(work, next_round, None, last_taken, last_norm)
            if version != NONE_YET:
                check(next_round > 0, f"client {name!r} holds a task of no round")
                held[name] = version
        self._count()
        return held

    def _count(self) -> None:
        awaited = 0 if self._population is None else self._population - len(self._left)
        self.size = max(len(self._taking_part) + len(self._resting), awaited)


def check_name(client_id: object) -> None:
    """Refuse what cannot be a client's id."""
    if not isinstance(client_id, str) or not client_id:
        raise ClientStateError(f"a client's id must be a non-empty string; given {client_id!r}")


def protocol_fault(client: ClientRecord, update: ClientUpdate) -> Refusal | None:
    """Why an update does not answer its client's task; None if it does."""
    if not are_counts(update.version, 0 if update.round is None else update.round):
        return Refusal.VERSION_NOT_HELD
    holds = client.task is not None and update.version == client.task.version
    if update.round is None:
        if holds:
            return None
        taken = update.version == client.last_taken
        return Refusal.DUPLICATE if taken else Refusal.VERSION_NOT_HELD
    if client.task is not None and update.round == client.task.round:
        return None if holds else Refusal.VERSION_NOT_HELD
    earlier = 0 <= update.round < client.next_round
    return Refusal.DUPLICATE if earlier else Refusal.VERSION_NOT_HELD
