"""What a durable transport makes of signals, before and after a restart of its server."""

from collections.abc import Sequence

import pytest

from asyncfeded import Server, TrainTask, rules
from asyncfeded.core.errors import ClientStateError
from asyncfeded.core.rule import AnyRule
from asyncfeded.runtime.events import Event, Left, RoundLost
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Quiet, Signal
from asyncfeded.store.disk import Buffer
from asyncfeded.store.durable import NOT_BACK, RESTARTED, RETURN_SECONDS, Durable
from asyncfeded.store.sectors import plain_bytes
from asyncfeded.store.signals import decoded
from builders import Fixed, answer, vector


class Listed:
    """Records that are safe as soon as somebody waits for them."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.committed = 0

    def append(self, *content: Buffer) -> int:
        self.contents.append(b"".join(plain_bytes(content)))
        return len(self.contents)

    def wait_for(self, number: int) -> None:
        self.committed = number


def of_a_life(
    rule: AnyRule, transport: Fixed, records: Listed, replayed: Sequence[bytes] = ()
) -> tuple[Server, list[Event]]:
    server = Server(vector(0), rule)
    durable = Durable(transport, records, server, map(decoded, replayed))
    return server, list(run(server, durable, 10_000.0))


def after_a_restart(rule: AnyRule, *signals: Signal) -> tuple[Server, list[Event], Fixed]:
    """Two clients took part when the server died; then come these signals."""
    before, after = Listed(), Fixed(*signals)
    of_a_life(rule, Fixed(Joining(0.0, "a"), Joining(0.0, "b")), before)
    server, events = of_a_life(rule, after, Listed(), before.contents)
    return server, events, after


def test_a_client_that_joins_anew_after_a_restart_loses_its_round() -> None:
    _, events, after = after_a_restart(rules.asyncfeded(), Joining(1.0, "a"))
    assert RoundLost(1.0, "a", 0, RESTARTED, 1) in events
    assert [(task.client_id, task.round) for task in after.sent] == [("a", 1)]


def test_a_client_that_goes_on_after_a_restart_is_answered() -> None:
    update = answer(TrainTask("a", 1, vector(0), 10), [1.0])
    server, _, after = after_a_restart(rules.asyncfeded(), Arriving(1.0, update))
    assert (server.version, server.accepted) == (2, 1)
    assert [(task.client_id, task.round) for task in after.sent] == [("a", 1)]


def test_a_client_that_lost_its_round_during_a_restart_is_answered() -> None:
    _, _, after = after_a_restart(rules.asyncfeded(), Losing(1.0, "a", 0))
    assert [(task.client_id, task.round) for task in after.sent] == [("a", 1)]


def test_a_round_does_not_wait_for_ever_for_a_client_that_does_not_come_back() -> None:
    update = answer(TrainTask("a", 1, vector(0), 10), [1.0])
    late = 1.0 + RETURN_SECONDS
    signals = Arriving(1.0, update), Quiet(late - 1.0, 10.0), Quiet(late, 10.0)
    server, events, after = after_a_restart(rules.fedavg(), *signals)
    assert Left(late, "b", NOT_BACK) in events
    assert (server.version, server.clients) == (2, ("a",))
    assert [(task.client_id, task.round) for task in after.sent] == [("a", 1)]


def test_a_client_that_comes_back_too_late_joins_again() -> None:
    late = Joining(1.0 + RETURN_SECONDS, "b")
    server, _, after = after_a_restart(rules.asyncfeded(), Joining(1.0, "a"), late)
    assert server.clients == ("a", "b")
    assert [(task.client_id, task.round) for task in after.sent] == [("a", 1), ("b", 1)]


def test_a_client_that_has_left_is_not_waited_for() -> None:
    late = Quiet(1.0 + RETURN_SECONDS, 10.0)
    _, events, _ = after_a_restart(rules.asyncfeded(), Leaving(1.0, "a"), Leaving(1.0, "b"), late)
    assert [event.reason for event in events if isinstance(event, Left)] == [None, None]


def test_what_the_server_cannot_handle_is_not_written_down() -> None:
    with pytest.raises(ClientStateError, match="a client's id must be a non-empty string"):
        Joining(0.0, "")
