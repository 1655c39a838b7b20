"""The same clients through the virtual clock and through Ray: the same sequence of versions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import toy
from asyncfeded import Server, rules
from asyncfeded.cluster.ray_transport import RayTransport
from asyncfeded.core.rule import AnyRule
from asyncfeded.runtime.events import Event, Joined, Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess
from scripted import LONGEST_SECONDS, Gates, drive

pytestmark = pytest.mark.usefixtures("ray_here")

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


def on_the_virtual_clock(rule: AnyRule) -> Iterator[Event]:
    members = [Membership(name) for name in toy.NAMES]
    transport = VirtualTransport(toy.toy_devices(), InProcess(toy.toy_train), members, 1e6)
    yield from run(Server(toy.toy_initial(), rule), transport, 1e6)


def first_arrivals(events: Iterator[Event]) -> Iterator[Event]:
    arrivals = 0
    for event in events:
        yield event
        arrivals += isinstance(event, Received)
        if arrivals == ARRIVALS:
            return


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
