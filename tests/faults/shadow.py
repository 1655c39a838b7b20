"""A second server, which is given the signals that must have survived, and nothing else."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asyncfeded.core.server import Server
from asyncfeded.runtime.transport import AWAY, REJOINED, Arriving, Joining, Leaving, Losing, Signal
from asyncfeded.store.states import tree_of
from faults.chance import InvariantError


class Shadow:
    """Handles signals as the loop must, in the plainest way."""

    def __init__(self, make_server: Callable[[], Server]) -> None:
        self.server = make_server()
        self.number = 0
        self._taken: set[tuple[str, int]] = set()

    def handle(self, signal: Signal) -> None:
        """Do what a signal asks for."""
        server = self.server
        self.number += 1
        match signal:
            case Joining(_, name):
                if not server.takes_part(name):
                    server.join(name)
                elif (number := server.round_of(name)) is not None:
                    server.lose_round(name, number, REJOINED)
            case Losing(_, name, number, reason):
                if server.round_of(name) == number:
                    server.lose_round(name, number, reason)
            case Leaving(_, name, _, lost_round):
                if server.takes_part(name):
                    server.leave(name, None if lost_round is None else AWAY)
            case Arriving(_, update, held_seconds):
                receipt = server.receive(update, held_seconds)
                if receipt.accepted and update.round is not None:
                    answered = (update.client_id, update.round)
                    if answered in self._taken:
                        raise InvariantError(f"round {answered} is taken twice")
                    self._taken.add(answered)
            case _:
                raise AssertionError(signal)


def content_of(server: Server) -> Any:
    """All that a server knows, to be compared to the bit."""
    return _plain(tree_of(server.state()))


def difference(one: Any, other: Any, place: str = "server") -> str:
    """Where two contents differ first; empty if they do not."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            if name not in one or name not in other:
                return f"{place}.{name} is missing in one"
            if found := difference(one[name], other[name], f"{place}.{name}"):
                return found
        return ""
    return "" if one == other else f"{place}: {one!r:.200} is not {other!r:.200}"


def _plain(tree: Any) -> Any:
    if isinstance(tree, np.ndarray):
        return str(tree.dtype), tree.shape, tree.tobytes()
    if isinstance(tree, Mapping):
        return {str(name): _plain(item) for name, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(item) for item in tree]
    return repr(tree) if isinstance(tree, float) else tree
