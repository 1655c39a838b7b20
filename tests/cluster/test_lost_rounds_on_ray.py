"""Rounds that are lost on Ray: heard of, not trained, and no failure of their client."""

from pathlib import Path

import pytest

import toy
from asyncfeded import Server, TrainTask, rules
from asyncfeded.cluster.processes import Imposed
from asyncfeded.cluster.ray_transport import MOST_FAILURES, RayTransport
from asyncfeded.runtime.events import Left, Received, RoundLost
from scripted import LONGEST_SECONDS, Gates, drive

pytestmark = pytest.mark.usefixtures("ray_here")

LOST = MOST_FAILURES + 2
"""More than a client may fail in a row: a lost round is no failure."""


def lost_at_first(task: TrainTask, _begins: float) -> Imposed:
    """The first rounds of client-0 are lost."""
    return Imposed(lost=task.client_id == "client-0" and task.round < LOST)


def test_a_client_that_loses_many_rounds_goes_on(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    gates.open_all("client-0")
    clients = {"client-0": gates.client()}
    transport = RayTransport(clients, LONGEST_SECONDS, delays=lost_at_first)
    server = Server(toy.toy_initial(), rules.asyncfeded())
    lost = []
    for event in drive(transport, server=server):
        assert not isinstance(event, Left)
        if isinstance(event, RoundLost):
            lost.append(event.round)
        if isinstance(event, Received):
            assert event.round == LOST
            break
    assert lost == list(range(LOST))
    assert server.lost == {"suspended": LOST}
    assert not (tmp_path / "client-0-0.pid").exists()
    assert (tmp_path / f"client-0-{LOST}.pid").exists()


def test_a_synchronous_round_averages_the_survivors(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    for name in toy.NAMES:
        gates.open_all(name)
    clients = {name: gates.client() for name in toy.NAMES}
    transport = RayTransport(clients, LONGEST_SECONDS, delays=lost_at_first)
    server = Server(toy.toy_initial(), rules.fedavg())
    survivors = set()
    for event in drive(transport, server=server):
        if isinstance(event, Received) and event.round == 0:
            survivors.add(event.receipt.client_id)
        if server.version == 2:
            break
    assert survivors == {"client-1", "client-2", "client-3"}
