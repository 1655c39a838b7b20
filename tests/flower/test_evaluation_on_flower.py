"""Evaluations by clients and on the server: neither keeps training waiting."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from flwr.app import Error, Message

from asyncfeded import Server, rules
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.evaluation import AskedClients, UnderWay, drawn
from asyncfeded.flower.messages import Messages
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.events import Evaluated, Event, Received
from asyncfeded.runtime.loop import run
from fake_grid import Answer, Clock, FakeGrid, arrays_of, config_of, plus, reply_with
from small_federation import ZERO, federation, transport_of


def measuring(accuracy: float, examples: int, train: float = 0.1) -> Answer:
    """A ClientApp that also evaluates."""

    def answer(message: Message) -> Message | None:
        if message.metadata.message_type != "evaluate":
            return plus(train)(message)
        arrays_of(message)
        return reply_with(message, None, num_examples=examples, accuracy=accuracy)

    return answer


def evaluated_run(
    grid: FakeGrid, clock: Clock, seconds: float, evaluate_on: int, every: float = 10.0
) -> list[Event]:
    messages = Messages(evaluate_seconds=25.0)
    transport = transport_of(grid, clock, seconds, evaluate_on=evaluate_on, messages=messages)

    def evaluate(parameters: Vector, _: float) -> UnderWay:
        return UnderWay(None, transport.evaluate(parameters), transport.wait_for)

    server = Server(ZERO, rules.asyncfeded())
    return list(run(server, transport, seconds, evaluate, every))


def evaluations(events: list[Event]) -> Iterator[Evaluated]:
    return (event for event in events if isinstance(event, Evaluated))


def test_what_clients_measure_is_weighted_by_their_examples() -> None:
    grid, clock = federation(measuring(0.5, 100), measuring(0.8, 200))
    first = next(evaluations(evaluated_run(grid, clock, 35.0, 2)))
    # (100 · 0.5 + 200 · 0.8) / 300 = 0.7
    assert first.metrics == {"federated_accuracy": pytest.approx(0.7), "federated_clients": 2.0}
    assert (first.seconds, first.version) == (0, 1)


def test_as_many_clients_evaluate_as_are_asked_for_and_others_in_the_next_round() -> None:
    grid, clock = federation(*[measuring(0.5, 10)] * 6)
    evaluated_run(grid, clock, 100.0, 2)
    asked: dict[int, set[int]] = {}
    for message in grid.log:
        if message.metadata.message_type == "evaluate":
            number = config_of(message)["server-round"]
            asked.setdefault(number, set()).add(message.metadata.dst_node_id)
    assert all(len(nodes) == 2 for nodes in asked.values())
    assert len(asked) > 5
    assert len(set.union(*asked.values())) > 3


def test_a_client_that_does_not_evaluate_is_left_out() -> None:
    def cannot(message: Message) -> Message | None:
        if message.metadata.message_type == "evaluate":
            return Message(Error(2, "no evaluate function"), reply_to=message)
        return plus(0.1)(message)

    def nonsense(message: Message) -> Message | None:
        if message.metadata.message_type == "evaluate":
            return reply_with(message, None, accuracy=0.9)
        return plus(0.1)(message)

    events = evaluated_run(*federation(measuring(0.5, 10), cannot, nonsense), 25.0, 3)
    for event in evaluations(events):
        assert event.metrics == {"federated_accuracy": 0.5, "federated_clients": 1.0}


def test_training_goes_on_while_a_client_takes_its_time_to_evaluate() -> None:
    def hangs(message: Message) -> Message | None:
        return None if message.metadata.message_type == "evaluate" else plus(0.1)(message)

    events = evaluated_run(*federation(hangs, measuring(0.5, 10)), 95.0, 2)
    received = [event.seconds for event in events if isinstance(event, Received)]
    assert max(b - a for a, b in pairwise(received)) < 1.5
    # Each takes 25 s, so of those due every 10 s two of three are left out.
    assert [event.seconds for event in evaluations(events)] == [0, 30, 60, 90, 95]
    versions = [event.version for event in evaluations(events)]
    assert versions == sorted(versions)


def test_a_number_that_is_none_has_no_part_in_a_mean() -> None:
    asked = AskedClients(np.zeros(1, np.float32), 0, {"a", "b"})
    asked.answered("a", (1.0, {"loss": float("nan"), "auc": 0.5}))
    asked.answered("b", (3.0, {"loss": 2.0}))
    assert asked.done
    assert asked.metrics() == {
        "federated_auc": 0.5,
        "federated_clients": 2.0,
        "federated_loss": 2.0,
    }


def test_the_draw_does_not_depend_on_the_order_of_clients() -> None:
    names = [f"client-{n}" for n in range(10)]
    assert drawn(names, 3, 0, 5) == drawn(names[::-1], 3, 0, 5)
    assert drawn(names, 20, 0, 5) == sorted(names)
    assert len({tuple(drawn(names, 3, 0, number)) for number in range(20)}) > 10


class Slow:
    """An evaluation that is ready when it is told to be."""

    def __init__(self) -> None:
        self.done = False
        self.waited = 0

    def ready(self) -> bool:
        return self.done

    def __call__(self) -> Evaluation:
        self.waited += not self.done
        return Evaluation({"accuracy": 0.5})


def test_the_loop_leaves_out_what_is_due_before_the_last_is_ready() -> None:
    slow: list[Slow] = []

    def evaluate(parameters: Vector, seconds: float) -> Slow:
        slow.append(Slow())
        return slow[-1]

    grid, clock = federation(plus(0.1))
    server = Server(ZERO, rules.asyncfeded())
    due = []
    for event in run(server, transport_of(grid, clock, 50.0), 50.0, evaluate, 10.0):
        if event.seconds > 25:
            slow[0].done = True
        if isinstance(event, Evaluated):
            due.append(event.seconds)
    assert due == [0, 30, 50]  # that of 30 s is waited for at the end, and nowhere else
    assert [one.waited for one in slow] == [0, 1, 1]
