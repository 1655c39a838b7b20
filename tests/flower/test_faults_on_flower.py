"""Whatever goes wrong at a node is counted by its reason, and the run goes on."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, RecordDict

from asyncfeded import rules
from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.flower.faults import Fault, fault_of
from asyncfeded.flower.messages import Messages
from asyncfeded.runtime.events import Event, Joined, Left, Received
from fake_grid import Answer, Node, arrays_of, plus, reply_with
from small_federation import accepted, events_of, federation, lost, refused


def once(what: Answer, then: Answer) -> Answer:
    """A ClientApp that does something else the first time."""
    times = iter([what])
    return lambda message: next(times, then)(message)


def with_arrays(arrays: dict[str, Any], **metrics: Any) -> Answer:
    return lambda message: reply_with(
        message, ArrayRecord(arrays), **(metrics or {"num_examples": 10})
    )


X = np.ones(3, np.float32)


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 6, 7, 8, 99])
def test_an_error_reply_loses_a_round_and_the_client_goes_on(code: int) -> None:
    fails = once(lambda message: Message(Error(code, "Trace\nwhy"), reply_to=message), plus(0.1))
    events = events_of(*federation(fails, plus(0.2)))
    assert lost(events) == [("site-1", fault_of(code).value)]
    assert set(accepted(events)) == {"site-1", "site-2"}
    assert not any(isinstance(event, Left) for event in events)


def test_every_code_of_flowers_has_its_reason() -> None:
    from flwr.common.constant import ErrorCode

    codes = [value for name, value in vars(ErrorCode).items() if name.isupper() and value != 0]
    assert all(fault_of(code) is not Fault.ERROR_REPLY for code in codes)
    assert fault_of(0) is Fault.ERROR_REPLY


UNFIT: dict[str, tuple[Answer, str]] = {
    "another length": (with_arrays({"x": Array(np.ones(4, np.float32))}), "wrong_length"),
    "another shape": (with_arrays({"x": Array(np.ones((3, 1), np.float32))}), "wrong_length"),
    "another name": (with_arrays({"y": Array(X)}), "wrong_length"),
    "an array too many": (with_arrays({"x": Array(X), "y": Array(X)}), "wrong_length"),
    "another type": (with_arrays({"x": Array(np.ones(3))}), "wrong_type"),
    "no arrays": (lambda message: reply_with(message, None, num_examples=10), "wrong_type"),
    "nothing": (lambda message: Message(RecordDict(), reply_to=message), "wrong_type"),
    "no examples": (with_arrays({"x": Array(X)}, accuracy=0.5), "wrong_type"),
    "half an example": (with_arrays({"x": Array(X)}, num_examples=0.5), "wrong_type"),
    "minus one example": (with_arrays({"x": Array(X)}, num_examples=-1), "out_of_range"),
    "steps below one": (
        with_arrays({"x": Array(X)}, num_examples=1, local_steps=0),
        "out_of_range",
    ),
    "no bytes": (with_arrays({"x": Array("float32", (3,), "numpy.ndarray", b"")}), "wrong_type"),
    "bytes of torch": (
        with_arrays({"x": Array("float32", (3,), "torch", b"\0" * 12)}),
        "wrong_type",
    ),
    "NaN": (with_arrays({"x": Array(np.array([1, np.nan, 1], np.float32))}), "not_finite"),
    "infinity": (with_arrays({"x": Array(np.array([1, np.inf, 1], np.float32))}), "not_finite"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_an_unfit_reply_is_refused_and_the_client_goes_on(what: str) -> None:
    answer, reason = UNFIT[what]
    events = events_of(*federation(once(answer, plus(0.1)), plus(0.2)))
    assert refused(events) == [reason]
    assert set(accepted(events)) == {"site-1", "site-2"}
    assert lost(events) == []


def test_a_model_that_was_not_trained_is_refused() -> None:
    events = events_of(*federation(once(plus(0.0), plus(0.1)), plus(0.2)))
    assert refused(events) == ["zero_delta"]


def test_a_client_that_never_answers_expires_and_is_given_more_time_then() -> None:
    def silent(message: Message) -> None:
        return None

    messages = Messages(first_seconds=200.0)
    grid, clock = federation(once(silent, plus(0.1)), plus(0.2))
    events = events_of(grid, clock, 300.0, messages=messages)
    assert lost(events) == [("site-1", "expired")]
    allowed = [round(m.metadata.ttl) for m in grid.log if m.metadata.dst_node_id == 1]
    assert allowed[:2] == [200, 400]
    assert "site-1" in accepted(events)
    expired = next(e.seconds for e in events if getattr(e, "reason", None) == "expired")
    assert 200.0 <= expired < 201.0


def test_a_message_tells_flower_when_it_expires() -> None:
    grid, clock = federation(plus(0.1), seconds=70.0)
    events_of(grid, clock, 400.0, messages=Messages(first_seconds=300.0, patience=3.0))
    # Then three times the 70 s that the client took.
    assert [round(message.metadata.ttl) for message in grid.log][:2] == [300, 210]


def test_a_node_that_dies_loses_its_round_and_its_client_comes_back_with_its_k() -> None:
    grid, clock = federation(plus(0.1), plus(0.2), seconds=1.0)
    dead: list[Node] = []
    ks: list[tuple[str, int]] = []

    def at(event: Event) -> None:
        if event.seconds > 20 and not dead:
            dead.append(grid.kill(1))
        if event.seconds > 40 and 3 not in grid.nodes:
            grid.add(Node(3, plus(0.1), 1.0, "site-1"))  # a restarted SuperNode has another id
        if isinstance(event, Received):
            ks.extend((task.client_id, task.epochs) for task in event.receipt.tasks)

    events = events_of(grid, clock, 60.0, at=at)
    assert lost(events) == [("site-1", "node_unavailable")]
    left = [event for event in events if isinstance(event, Left)]
    assert [(event.client_id, event.reason) for event in left] == [("site-1", "node_unavailable")]
    joined = [event for event in events if isinstance(event, Joined)]
    assert [event.client_id for event in joined] == ["site-1", "site-2", "site-1"]
    before = [k for name, k in ks[: ks.index(("site-1", joined[2].epochs)) + 1] if name == "site-1"]
    assert joined[2].epochs == before[-1] != 10
    rounds = [
        event.round or 0
        for event in events
        if isinstance(event, Received) and event.receipt.client_id == "site-1"
    ]
    assert rounds == sorted(set(rounds))  # none came twice
    assert joined[2].seconds < events[-1].seconds - 5
    assert accepted(events)[-5:].count("site-1") >= 1


def test_a_reply_that_comes_twice_counts_once() -> None:
    grid, clock = federation(plus(0.1))
    grid.repeats = True
    events = events_of(grid, clock, 20.0)
    number = len(accepted(events))
    assert number > 5
    assert refused(events).count("duplicate") in (number - 1, number)
    assert set(refused(events)) == {"duplicate"}
    assert len(grid.log) in (number, number + 1)  # no task was sent again for it


@pytest.mark.parametrize(("node_id", "reason"), [(1, "version_not_held"), (7, "unknown_client")])
def test_a_reply_to_a_message_that_was_never_sent_is_refused(node_id: int, reason: str) -> None:
    grid, clock = federation(plus(0.1))

    def at(event: Event) -> None:
        if isinstance(event, Joined):
            message = Message(RecordDict(), node_id, "train")
            message.metadata.__dict__["_message_id"] = "never sent"
            grid.strays.append(Message(RecordDict(), reply_to=message))

    events = events_of(grid, clock, 20.0, at=at)
    assert refused(events) == [reason]
    assert len(accepted(events)) > 5
    assert len(grid.log) <= len(accepted(events)) + 1


def test_the_reply_of_another_node_is_no_reply() -> None:
    grid, clock = federation(plus(0.1), plus(0.2))
    own = grid.nodes[1].answer

    def forged(message: Message) -> Message | None:
        reply = own(message)
        assert reply is not None
        reply.metadata.__dict__["_src_node_id"] = 2
        return reply

    grid.nodes[1].answer = once(forged, own)
    events = events_of(grid, clock, 20.0)
    assert refused(events) == ["version_not_held"]
    assert lost(events) == [("site-1", "message_lost")]  # as Flower says next
    assert set(accepted(events)) == {"site-1", "site-2"}


def test_a_message_that_flower_does_not_take_is_a_lost_round() -> None:
    grid, clock = federation(plus(0.1), plus(0.2))
    refuse = iter([True])
    grid.refuses = lambda message: message.metadata.dst_node_id == 1 and next(refuse, False)
    events = events_of(grid, clock, 20.0)
    assert lost(events) == [("site-1", "not_sent")]
    assert set(accepted(events)) == {"site-1", "site-2"}


def test_a_client_that_fails_again_and_again_leaves_for_a_while() -> None:
    def fails(message: Message) -> Message:
        return Message(Error(2, "no data"), reply_to=message)

    events = events_of(*federation(fails, plus(0.2)), 400.0)
    left = [event for event in events if isinstance(event, Left)]
    assert left[0].reason == "5 failures in a row; the last: app_raised"
    joined = [e.seconds for e in events if isinstance(e, Joined) and e.client_id == "site-1"]
    assert len(joined) == 2
    assert joined[1] - left[0].seconds >= 300
    assert accepted(events).count("site-2") > 300


def test_a_client_that_only_sends_nonsense_leaves_for_a_while() -> None:
    nonsense, reason = UNFIT["another length"]
    events = events_of(*federation(nonsense, plus(0.2)), 200.0, rule=rules.fedavg())
    assert refused(events) == [reason] * 5
    left = [event for event in events if isinstance(event, Left)]
    assert [e.reason for e in left] == ["5 failures in a row; the last: unfit update"]
    assert accepted(events).count("site-2") > 150  # the rounds go on without it


def test_a_synchronous_round_does_without_a_client_that_fails() -> None:
    def fails(message: Message) -> Message:
        return Message(Error(8, "killed"), reply_to=message)

    events = events_of(*federation(fails, plus(0.2), plus(0.3)), 100.0, rule=rules.fedavg())
    assert {"site-2", "site-3"} == set(accepted(events))
    assert len(accepted(events)) > 60
    assert len(lost(events)) == 5  # then it rests


def test_the_order_of_a_config_is_the_users_and_k_has_the_last_word() -> None:
    grid, clock = federation(plus(0.1))
    messages = Messages(epochs_key="epochs", config={"lr": 0.5, "epochs": 77, "who": "me"})
    events_of(grid, clock, 5.0, messages=messages)
    config = dict(grid.log[0].content.config_records["config"])
    assert config == {
        "lr": 0.5,
        "who": "me",
        "epochs": 10,
        "server-round": 1,
        "client": "site-1",
        "client-round": 0,
    }
    assert arrays_of(grid.log[0])["x"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 0.5}, "patience must be at least 1; given 0.5"),
        ({"identity": "key"}, "identity must be 'ask' or 'node'; given 'key'"),
        ({"poll_seconds": 0.0}, "poll_seconds must be a finite number above 0; given 0.0"),
        ({"epochs_key": ""}, "epochs_key must be a text; given ''"),
        ({"config": 3}, "config must be a mapping, or a function of a TrainTask; given an int"),
    ],
)
def test_a_wrong_setting_is_named(options: dict[str, Any], message: str) -> None:
    make: Callable[..., Messages] = Messages
    with pytest.raises(AsyncFedEDError) as raised:
        make(**options)
    assert str(raised.value) == message
