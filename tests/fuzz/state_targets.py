"""What a server keeps and what clients send: trees, signals, states."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from asyncfeded import ClientUpdate, PersistentMap, Server, VersionHistory, rules
from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.core.history import Keep
from asyncfeded.core.messages import PROTOCOL_FAULTS, Refusal
from asyncfeded.core.rule import AnyRule
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Quiet, Signal
from asyncfeded.store.codec import decode, encode
from asyncfeded.store.signals import decoded, encoded, plain_update
from asyncfeded.store.states import server_state, tree_of
from builders import answer, vector

RULES: dict[str, AnyRule] = {
    rule.name: rule
    for rule in (rules.asyncfeded(), rules.fedbuff(buffer_size=3), rules.fedavg(), rules.ca2fl())
}


def read_tree(content: bytes) -> None:
    """A tree that is written again is the same tree."""
    again = encode(decode(content))
    assert encode(decode(again)) == again


def trees() -> Iterator[bytes]:
    shared = np.arange(3, dtype=np.float32)
    yield encode({"a": [1, 2.5, None, True, "text", float("inf")], "b": {"$c": [shared, shared]}})
    yield encode(PersistentMap({"client": np.empty((0, 2), np.int64), "other": np.array(1, "u2")}))
    yield from states()


def read_signal(content: bytes) -> None:
    """A signal that is written again is the same; one that is refused changes no server."""
    signal = decoded(content)
    again = encoded(signal)
    assert encoded(decoded(again)) == again
    for rule in (rules.asyncfeded(), rules.fedavg()):
        _check_that_a_refusal_changes_nothing(_server_at_work(rule), signal)


def signals() -> Iterator[bytes]:
    update = ClientUpdate("a", 1, vector(3, 4), 10, 10, 0, None, {"loss": 0.5})
    yield encoded(Arriving(1.0, update, 0.5))
    yield encoded(Arriving(1.0, replace(update, client_id="b", round=1, steps=7), None))
    refused = plain_update(ClientUpdate("a", "1", [3.0], 10, 10, figures=7), 2)  # type: ignore[arg-type]
    yield encoded(Arriving(2.0, refused, None))
    yield encoded(Joining(0.0, "new"))
    yield encoded(Losing(1.0, "a", 0, "suspended"))
    yield encoded(Leaving(2.0, "b", None, 1))


def read_state(content: bytes) -> None:
    """A server that was made from a state has this state, and can go on."""
    state = server_state(decode(content))
    rule = RULES.get(state.rule, rules.asyncfeded())
    server = Server.restore(state, rule)
    saved = encode(tree_of(server.state()))
    again = Server.restore(server_state(decode(saved)), rule)
    assert encode(tree_of(again.state())) == saved
    if encode(tree_of(state.memory)) in _memories():  # what else a rule has kept, it alone knows
        for act in (_join_and_report, _let_all_report):
            _or_refuses(act, again)


def states() -> Iterator[bytes]:
    keeps: tuple[Keep, ...] = ("leased", "everything", "sketch")
    for rule in RULES.values():
        yield encode(tree_of(_server_at_work(rule).state()))
    for keep in keeps:
        server = _server_at_work(RULES["asyncfeded"], VersionHistory(keep, buckets=4))
        yield encode(tree_of(server.state()))
    with_statistics = Server(vector(1, 2, 3), RULES["asyncfeded"], trained=1, exact=1)
    with_statistics.receive(answer(with_statistics.join("a"), [1, 1, 0]))
    yield encode(tree_of(with_statistics.state()))


def _server_at_work(rule: AnyRule, history: VersionHistory | None = None) -> Server:
    """Three clients: one has reported, one has not, one has left."""
    server = Server(vector(1, 2), rule, history=history)
    task = server.join("a")
    for name in ("b", "c"):
        server.join(name)
    if rule.on_round_end is None:
        server.receive(answer(task, [1, 1]))
    server.leave("c")
    return server


def _check_that_a_refusal_changes_nothing(server: Server, signal: Signal) -> None:
    before = tree_of(server.state())
    model = server.parameters.tobytes()
    match signal:
        case Arriving(_, update, held_seconds):
            receipt = server.receive(plain_update(update, 2), held_seconds)
            if receipt.accepted:
                return
            assert receipt.reason is not None
            assert server.parameters.tobytes() == model or server.rule.on_round_end is not None
            if receipt.reason in (*PROTOCOL_FAULTS, Refusal.UNKNOWN_CLIENT):
                before["refused"][receipt.reason.value] = 1
                assert encode(tree_of(server.state())) == encode(before)
        case Joining(_, name):
            _or_stays(server, before, lambda: server.join(name))
        case Losing(_, name, number, reason):
            _or_stays(server, before, lambda: server.lose_round(name, number, reason))
        case Leaving(_, name, _, lost_round):
            lost = None if lost_round is None else "away"
            _or_stays(server, before, lambda: server.leave(name, lost))
        case Quiet():
            raise AssertionError(signal)


def _or_stays(server: Server, before: Any, act: Any) -> None:
    try:
        act()
    except AsyncFedEDError:
        assert encode(tree_of(server.state())) == encode(before)


def _memories() -> set[bytes]:
    return {encode(tree_of(server_state(decode(seed)).memory)) for seed in states()}


def _or_refuses(act: Any, server: Server) -> None:
    with suppress(AsyncFedEDError):
        act(server)


def _join_and_report(server: Server) -> None:
    task = server.join("one that is new")
    server.receive(answer(task, np.ones(server.parameters.size).tolist()), 1.0)
    server.leave("one that is new")


def _let_all_report(server: Server) -> None:
    size = server.parameters.size
    for name in server.at_work:
        number = server.round_of(name)
        update = ClientUpdate(name, server.version, np.ones(size, np.float32), 1, 1, number)
        server.receive(update, 1.0)
    server.parameters.tobytes()
