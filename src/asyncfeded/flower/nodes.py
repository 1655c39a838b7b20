"""Which nodes are there, and which client each of them is.

A node id changes when a SuperNode is started again, so it is no name for a client. A node is known
by the name that it was registered with; or by the name with which our ClientApp answers a query,
made of the node's partition-id; or else by its node id. While a node is there, no other can take
its name: a second one waits until Flower has given up the first.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from flwr.app import RecordDict
from flwr.serverapp import Grid

from asyncfeded.flower.calls import reaching_flower
from asyncfeded.flower.faults import Fault
from asyncfeded.flower.messages import Identity

log = logging.getLogger("flwr")

LOOK_SECONDS = 2.0
"""How often the server asks Flower which nodes are there."""
ASK_AGAIN_SECONDS = 30.0
"""When a node is asked again who it is, after its ClientApp did not come up."""

Ask = Callable[[int], bool]
"""Asks a node who it is; False if the question could not be sent."""


class Question(NamedTuple):
    """A node is asked who it is."""

    node_id: int


class Came(NamedTuple):
    """A client has a node now."""

    client_id: str
    node_id: int


class Went(NamedTuple):
    """A client's node is there no longer."""

    client_id: str
    node_id: int


class Nodes:
    """The nodes of a run by the clients they are."""

    def __init__(self, grid: Grid, identity: Identity, ask: Ask) -> None:
        self._grid = grid
        self._identity = identity
        self._ask = ask
        self._online: set[int] = set()
        self._names: dict[int, str] = {}
        self._node_of: dict[str, int] = {}
        self._here: set[int] = set()
        """The nodes that are clients now …"""
        self._waiting: set[int] = set()
        """… and those that wait for their names."""
        self._to_ask: dict[int, float] = {}
        self._next_look = 0.0

    def node_of(self, client_id: str) -> int | None:
        """The node of a client; None if it has none now."""
        return self._node_of.get(client_id)

    def client_of(self, node_id: int) -> str | None:
        """The client that a node is; None if it is none."""
        name = self._names.get(node_id)
        return name if name is not None and self._node_of.get(name) == node_id else None

    def changes(self, now: float) -> list[Came | Went]:
        """Which clients have come and gone; asks Flower which nodes are there, if it is time to."""
        went = self._look(now)
        return [*went, *self._named()]

    def _look(self, now: float) -> list[Went]:
        if now < self._next_look:
            return []
        self._next_look = now + LOOK_SECONDS
        with reaching_flower():
            there = {info.node_id: info.name for info in self._grid.get_nodes()}
        changes: list[Went] = []
        for node_id in sorted(self._online - there.keys()):
            if (name := self._forget(node_id)) is not None:
                changes.append(Went(name, node_id))
        for node_id in sorted(there.keys() - self._online):
            self._online.add(node_id)
            self._name(node_id, there[node_id], now)
        for node_id, when in list(self._to_ask.items()):
            if when <= now:
                sent = self._ask(node_id)
                self._to_ask.pop(node_id)
                if not sent:
                    self._to_ask[node_id] = now + ASK_AGAIN_SECONDS
        return changes

    def _named(self) -> list[Came]:
        """The clients that have come because their nodes are known by name now."""
        came: list[Came] = []
        for node_id, name in self._names.items():
            holder = self._node_of.setdefault(name, node_id)
            if holder != node_id:
                self._waits(node_id, name, holder)
            elif node_id not in self._here:
                self._here.add(node_id)
                came.append(Came(name, node_id))
        return came

    def _waits(self, node_id: int, name: str, holder: int) -> None:
        """Say once that a node waits for its name."""
        if node_id not in self._waiting:
            self._waiting.add(node_id)
            log.warning(
                "node %d says that it is %s, as node %d does: it waits", node_id, name, holder
            )

    def answered(self, node_id: int, name: str | None) -> None:
        """A node has said who it is; without a name, it is known by its node id."""
        if node_id in self._online:
            self._names[node_id] = name or _by_id(node_id)
            if not name:
                log.warning(
                    "node %d has no name: it is known by its node id, and is another client when "
                    "its SuperNode is started again (give the SuperNode a registered name)",
                    node_id,
                )

    def not_answered(self, node_id: int, fault: Fault, now: float) -> None:
        """A node has not said who it is: a ClientApp that raised has no such query."""
        if fault is Fault.APP_RAISED:
            self.answered(node_id, None)
        elif node_id in self._online:
            self._to_ask[node_id] = now + ASK_AGAIN_SECONDS

    def lose(self, client_id: str) -> None:
        """Flower says that a client's node is gone: it is another arrival if it is there again."""
        node_id = self._node_of.get(client_id)
        if node_id is not None:
            self._forget(node_id)

    def _name(self, node_id: int, registered: str, now: float) -> None:
        if registered:
            self._names[node_id] = registered
        elif self._identity == "node":
            self._names[node_id] = _by_id(node_id)
        else:
            self._to_ask[node_id] = now

    def _forget(self, node_id: int) -> str | None:
        """Forget a node; returns the client that it was."""
        for known in (self._online, self._here, self._waiting):
            known.discard(node_id)
        self._to_ask.pop(node_id, None)
        name = self._names.pop(node_id, None)
        if name is None or self._node_of.get(name) != node_id:
            return None
        del self._node_of[name]
        return name


def question() -> RecordDict:
    """What a node is sent to say who it is."""
    return RecordDict()


def _by_id(node_id: int) -> str:
    return f"node-{node_id}"
