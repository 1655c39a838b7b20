"""The same clients through the virtual clock, Ray and Flower: the same sequence of versions."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message

import toy
from asyncfeded import Server, rules
from asyncfeded.cluster.ray_transport import RayTransport
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.rule import AnyRule
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.flower_transport import FlowerTransport
from asyncfeded.flower.messages import Messages
from asyncfeded.flower.model import Entry
from asyncfeded.runtime.events import Event, Joined, Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess
from fake_grid import Clock, FakeGrid, Node, arrays_of, config_of, reply_with
from scripted import LONGEST_SECONDS, Gates, drive

ARRIVALS = 14
"""Enough for every client to have reported and for several synchronous rounds."""

RULES: dict[str, AnyRule] = {
    "asyncfeded": rules.asyncfeded(),
    "fedasync": rules.fedasync(weighting="polynomial", a=0.5),
    "fedbuff": rules.fedbuff(buffer_size=3),
    "fedavg": rules.fedavg(),
    "fedprox": rules.fedprox(),
}


def what_happened(event: Event) -> tuple[object, ...] | None:
    """An event without its time, to the last bit of every figure."""
    match event:
        case Joined():
            return "join", event.client_id, event.version, event.epochs
        case Received(receipt=receipt):
            tasks = [(task.client_id, task.version, task.epochs) for task in receipt.tasks]
            figures = tuple(receipt.figures.items())
            return (
                *("update", receipt.client_id, event.round, event.base_version, receipt.version),
                *(receipt.accepted, receipt.lag, receipt.delta_norm, figures, tuple(tasks)),
            )
        case _:
            return None


def on_the_virtual_clock(rule: AnyRule, train: Train = toy.toy_train) -> Iterator[Event]:
    members = [Membership(name) for name in toy.NAMES]
    transport = VirtualTransport(toy.toy_devices(), InProcess(train), members, 1e6)
    yield from run(Server(toy.toy_initial(), rule), transport, 1e6)


def first_arrivals(events: Iterator[Event]) -> Iterator[Event]:
    arrivals = 0
    for event in events:
        yield event
        arrivals += isinstance(event, Received)
        if arrivals == ARRIVALS:
            return


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("name", RULES)
def test_ray_and_the_virtual_clock_make_the_same_versions(name: str, tmp_path: Path) -> None:
    expected = list(first_arrivals(on_the_virtual_clock(RULES[name])))
    script = [(e.receipt.client_id, e.round or 0) for e in expected if isinstance(e, Received)]
    gates = Gates(tmp_path)
    transport = RayTransport({client: gates.client() for client in toy.NAMES}, LONGEST_SECONDS)
    waiting = iter(script)
    happened = []
    for event in first_arrivals(drive(transport, RULES[name])):
        happened.append(event)
        joined = sum(isinstance(one, Joined) for one in happened)
        if isinstance(event, Received) or (isinstance(event, Joined) and joined == len(toy.NAMES)):
            gate = next(waiting, None)
            if gate is not None:
                gates.open(*gate)
    assert list(filter(None, map(what_happened, happened))) == list(
        filter(None, map(what_happened, expected))
    )


def trained_model(task: TrainTask) -> ClientUpdate:
    """Train to a model of float32: on Flower the model is sent, and the server takes the delta."""
    update = toy.toy_train(task)
    return replace(update, delta=task.parameters + update.delta - task.parameters)


def answered(message: Message) -> Message:
    """What a ClientApp in Flower's manner makes of the same training."""
    config, arrays = config_of(message), arrays_of(message)
    task = TrainTask(
        config["client"],
        config["server-round"],
        arrays["x"],
        config["local-epochs"],
        config["client-round"],
        config.get("proximal-mu", 0.0),
    )
    update = toy.toy_train(task)
    model = ArrayRecord({"x": Array(arrays["x"] + update.delta)})
    return reply_with(message, model, num_examples=update.num_examples)


@pytest.mark.parametrize("name", RULES)
def test_flower_and_the_virtual_clock_make_the_same_versions(name: str) -> None:
    expected = list(first_arrivals(on_the_virtual_clock(RULES[name], trained_model)))
    script = [(e.receipt.client_id, e.round or 0) for e in expected if isinstance(e, Received)]
    clock = Clock()
    grid = FakeGrid(clock)
    for node_id, client in enumerate(toy.NAMES, 1):
        grid.add(Node(node_id, answered, 0.0, client))
    waiting = iter(script)
    due = next(waiting)

    def is_due(message: Message) -> bool:
        config = config_of(message)
        return (config["client"], config["client-round"]) == due

    grid.holds = lambda message: not is_due(message)
    layout = (Entry("x", 0, toy.SIZE, (toy.SIZE,), np.dtype(np.float32)),)
    transport = FlowerTransport(
        grid, Codec(layout), Messages(), 1e6, clock=clock, sleep=clock.sleep
    )
    happened = []
    for event in first_arrivals(run(Server(toy.toy_initial(), RULES[name]), transport, 1e6)):
        happened.append(event)
        if isinstance(event, Received):
            due = next(waiting, ("", 0))
    assert list(filter(None, map(what_happened, happened))) == list(
        filter(None, map(what_happened, expected))
    )
