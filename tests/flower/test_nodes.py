"""Who a node is: a name that outlives the node's id."""

from typing import Any

import pytest

from asyncfeded.flower.messages import Messages
from asyncfeded.runtime.events import Event, Joined, Left
from fake_grid import Clock, FakeGrid, Node, named, plus
from small_federation import accepted, events_of, federation, refused


def who(grid: FakeGrid, clock: Clock, **options: Any) -> list[str]:
    events = events_of(grid, clock, 10.0, **options)
    return sorted({event.client_id for event in events if isinstance(event, Joined)})


def alone(node: Node) -> tuple[FakeGrid, Clock]:
    grid, clock = federation()
    grid.add(node)
    return grid, clock


def test_a_registered_node_is_known_by_its_name_and_not_asked() -> None:
    grid, clock = alone(Node(5, named("client-3", plus(0.1)), name="St. Mary"))
    assert who(grid, clock) == ["St. Mary"]
    assert {message.metadata.message_type for message in grid.log} == {"train"}


def test_our_client_app_says_who_it_is() -> None:
    assert who(*alone(Node(5, named("client-3", plus(0.1))))) == ["client-3"]


def test_a_foreign_client_app_is_known_by_its_node_id() -> None:
    grid, clock = alone(Node(5, plus(0.1)))
    assert who(grid, clock) == ["node-5"]
    kinds = [message.metadata.message_type for message in grid.log]
    assert kinds.count("query.client_name") == 1


def test_nobody_is_asked_where_node_ids_are_to_do() -> None:
    grid, clock = alone(Node(5, named("client-3", plus(0.1))))
    assert who(grid, clock, messages=Messages(identity="node")) == ["node-5"]
    assert {message.metadata.message_type for message in grid.log} == {"train"}


def test_an_answer_without_a_name_is_none() -> None:
    for name in ("", "x" * 201, "client-3\nclient-4", "\x1b[2J"):
        assert who(*alone(Node(5, named(name, plus(0.1))))) == ["node-5"]


def test_a_restarted_node_waits_for_its_name_until_flower_has_given_up_the_old_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    grid, clock = alone(Node(5, named("client-3", plus(0.1))))
    app = named("client-3", plus(0.1))

    def at(event: Event) -> None:
        if event.seconds > 10 and 6 not in grid.nodes:
            grid.nodes[5].answer = lambda message: None  # killed: nobody answers from now on
            grid.add(Node(6, app))
        if event.seconds > 30:
            grid.kill(5) if 5 in grid.nodes else None

    events = events_of(grid, clock, 60.0, at=at)
    names = [event.client_id for event in events if isinstance(event, Joined)]
    assert names == ["client-3", "client-3"]
    assert refused(events) == []  # what the server meant for the old node is not sent to the new
    left = next(event for event in events if isinstance(event, Left))
    again = [event for event in events if isinstance(event, Joined)][1]
    assert 30 <= left.seconds <= again.seconds < 40
    asked = [m.metadata.dst_node_id for m in grid.log if m.metadata.message_type != "train"]
    assert asked == [5, 6]
    trained = [m.metadata.dst_node_id for m in grid.log if m.metadata.message_type == "train"]
    assert trained == sorted(trained)  # node 6 only after node 5
    said = [r.getMessage() for r in caplog.records if "it waits" in r.getMessage()]
    assert said == ["node 6 says that it is client-3, as node 5 does: it waits"]


def test_a_node_whose_app_does_not_come_up_is_asked_again() -> None:
    from flwr.app import Error, Message

    times = iter([True])
    app = named("client-3", plus(0.1))

    def first_fails(message: Message) -> Message | None:
        if next(times, False):
            return Message(Error(1, "no module named hospital"), reply_to=message)
        return app(message)

    events = events_of(*alone(Node(5, first_fails)), 60.0)
    assert {event.client_id for event in events if isinstance(event, Joined)} == {"client-3"}
    assert len(accepted(events)) > 10


def test_the_clock_starts_when_the_first_client_is_there() -> None:
    grid, clock = federation()
    begun = clock.now

    def at(event: Event) -> None:
        if clock.now > begun + 35 and not grid.nodes:
            grid.add(Node(1, plus(0.1), name="late"))

    events = events_of(grid, clock, 20.0, at=at)
    joined = next(event for event in events if isinstance(event, Joined))
    assert joined.seconds == 0.0
    assert 18 <= len(accepted(events)) <= 20
    assert clock.now > begun + 55
