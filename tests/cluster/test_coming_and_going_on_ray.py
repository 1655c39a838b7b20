"""Clients on Ray that go away and come back."""

from pathlib import Path

import pytest

import toy
from asyncfeded import Availability, Membership, Server, TrainTask, rules
from asyncfeded.cluster.processes import NOTHING_IMPOSED, Imposed
from asyncfeded.cluster.ray_transport import RayTransport
from asyncfeded.cluster.ray_world import Ray
from asyncfeded.core.errors import SettingError
from asyncfeded.runtime.events import Event, Joined, Left, Received, RoundLost
from scripted import LONGEST_SECONDS, Gates, drive, until

pytestmark = pytest.mark.usefixtures("ray_here")


def test_who_goes_away_loses_its_round_and_joins_again_with_its_epochs(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    gates.open_all("b")
    gates.open("a", 0)
    periods = {"a": [(0.0, 2.0), (2.5, LONGEST_SECONDS)], "b": [(0.0, LONGEST_SECONDS)]}
    begun: list[tuple[str, int, float]] = []

    def told(task: TrainTask, begins: float) -> Imposed:
        begun.append((task.client_id, task.round, begins))
        return NOTHING_IMPOSED

    transport = RayTransport(
        {name: gates.client() for name in periods},
        LONGEST_SECONDS,
        delays=told,
        presence=Availability.from_periods(periods, when_away="lose"),
    )
    server = Server(toy.toy_initial(), rules.asyncfeded())
    happened: list[Event] = []
    for event in drive(transport, server=server):
        if getattr(getattr(event, "receipt", event), "client_id", "") == "a":
            happened.append(event)
        if isinstance(event, RoundLost):
            gates.open_all("a")
        if len(happened) == 6:
            break
    joined, first, lost, left, back, second = happened
    assert isinstance(joined, Joined)
    assert isinstance(first, Received)
    assert isinstance(lost, RoundLost)
    assert (lost.round, lost.reason) == (1, "away")
    assert isinstance(left, Left)
    assert (left.seconds, left.reason) == (lost.seconds, None)
    assert left.seconds >= 2.0
    assert isinstance(back, Joined)
    assert back.seconds >= 2.5
    assert first.receipt.next_task is not None
    assert back.epochs == first.receipt.next_task.epochs
    assert isinstance(second, Received)
    assert second.receipt.accepted
    assert second.round == 2
    assert server.lost == {"away": 1}
    mine = [(number, begins) for name, number, begins in begun if name == "a"]
    assert [number for number, _ in mine][:3] == [0, 1, 2]
    assert mine[2][1] >= back.seconds


def test_a_client_may_have_several_memberships(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    gates.open_all("a")
    members = [Membership("a", 1.5, LONGEST_SECONDS), Membership("a", 0.0, 1.0)]
    events = drive(RayTransport({"a": gates.client()}, LONGEST_SECONDS, memberships=members))
    assert until(events, Joined).seconds < 1.0
    last = until(events, Received).round
    for event in events:
        if isinstance(event, Received):
            last = event.round
        if isinstance(event, Left):
            assert (event.seconds >= 1.0, event.reason) == (True, None)
            break
    assert until(events, Joined).seconds >= 1.5
    received = until(events, Received)
    assert last is not None
    assert received.receipt.accepted
    assert received.round is not None
    assert received.round > last


def test_a_process_without_devices_cannot_stop_in_the_middle_of_a_round() -> None:
    available = Availability.from_periods({"a": [(0.0, 1.0)]})
    with pytest.raises(SettingError, match="when_away must be 'lose' on Ray where no devices are"):
        Ray(availability=available)
