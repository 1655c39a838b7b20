"""What a run on Ray does when clients die, hang or fail."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray

import toy
from asyncfeded import Server, rules
from asyncfeded.cluster import processes
from asyncfeded.cluster import ray_transport as transport_module
from asyncfeded.cluster.actors import cpus_each
from asyncfeded.cluster.processes import Answer, ClientProcess, Imposed, MakeTrain
from asyncfeded.cluster.ray_transport import RayTransport
from asyncfeded.core.errors import ClusterError, SettingError
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.deadlines import Deadlines
from asyncfeded.runtime.events import Event, Finished, Joined, Left, Received, Waiting
from asyncfeded.runtime.jobs import Order
from asyncfeded.runtime.membership import Membership
from scripted import LONGEST_SECONDS, Gates, drive, until

pytestmark = pytest.mark.usefixtures("ray_here")


class Scripted(Deadlines):
    """Allows what a test says, round by round, and then as much time as a client may need."""

    def __init__(self, *seconds: float) -> None:
        super().__init__()
        self._seconds = list(seconds)
        self.apart: list[float] = []

    def allowance(self, client_id: str, epochs: int) -> float:
        return self._seconds.pop(0) if self._seconds else LONGEST_SECONDS

    def answered(self, client_id: str, epochs: int, training: float, apart: float) -> None:
        self.apart.append(apart)


def failing(message: str) -> MakeTrain:
    def train(task: TrainTask) -> ClientUpdate:
        raise ValueError(message)

    return lambda: train


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "FIRST_PAUSE_SECONDS", 0.02)


@pytest.mark.usefixtures("short_pauses")
def test_a_killed_client_leaves_and_returns_with_its_k_while_the_others_go_on(
    gates: Gates,
) -> None:
    server = Server(toy.toy_initial(), rules.asyncfeded(initial_epochs=10))
    transport = RayTransport({"a": gates.client(), "b": gates.client()}, LONGEST_SECONDS)
    events = drive(transport, server=server)
    until(events, Joined, "b")
    gates.open("a", 0)
    first = until(events, Received, "a")
    assert first.receipt.next_task is not None
    steered = first.receipt.next_task.epochs
    assert steered != 10

    os.kill(gates.process_of("a", 1), signal.SIGKILL)
    lost = until(events, Left, "a")
    assert str(lost.reason).startswith("process lost: ")
    assert server.at_work == ("b",)
    assert server.stored_versions == 2, "b's version and the current one"
    gates.open("b", 0)
    until(events, Received, "b")

    back = until(events, Joined, "a")
    assert back.epochs == steered
    assert gates.process_of("a", 2) != gates.process_of("a", 1)
    gates.open("a", 2)
    again = until(events, Received, "a")
    assert again.receipt.accepted
    assert again.round == 2


@pytest.mark.usefixtures("short_pauses")
def test_a_killed_client_does_not_hold_up_a_synchronous_round(gates: Gates) -> None:
    server = Server(toy.toy_initial(), rules.fedavg())
    transport = RayTransport({"a": gates.client(), "b": gates.client()}, LONGEST_SECONDS)
    events = drive(transport, server=server)
    gates.open("b", 0)
    until(events, Received, "b")
    assert server.version == 1
    os.kill(gates.process_of("a", 0), signal.SIGKILL)
    until(events, Left, "a")
    assert server.version == 2, "the round has ended without the one that was lost"


@pytest.mark.usefixtures("short_pauses")
def test_a_client_that_never_answers_is_abandoned_after_its_deadline(gates: Gates) -> None:
    deadlines = Scripted(LONGEST_SECONDS, 0.5)
    transport = RayTransport({"a": gates.client()}, LONGEST_SECONDS, deadlines=deadlines)
    events = drive(transport)
    gates.open("a", 0)
    until(events, Received, "a")
    lost = until(events, Left, "a")
    assert lost.reason == "no answer within 0.5 s, its deadline"
    gates.open_all("a")
    assert until(events, Received, "a").receipt.accepted


def test_imposed_delays_are_slept(gates: Gates) -> None:
    gates.open_all("a")
    transport = RayTransport(
        {"a": gates.client()},
        LONGEST_SECONDS,
        delays=lambda *_: Imposed(before=0.1, compute=0.2, after=0.1),
    )
    events = drive(transport)
    first, second = until(events, Received), until(events, Received)
    assert first.seconds >= 0.4
    assert second.seconds - first.seconds >= 0.4


def test_imposed_delays_come_on_top_of_the_deadline(gates: Gates) -> None:
    transport = RayTransport(
        {"a": gates.client()},
        LONGEST_SECONDS,
        delays=lambda *_: Imposed(before=0.3, compute=0.4, after=0.3),
        deadlines=Scripted(0.5),
    )
    lost = until(drive(transport), Left, "a")
    assert lost.reason == "no answer within 1.5 s, its deadline"


@pytest.mark.usefixtures("short_pauses")
def test_a_client_whose_training_always_fails_is_given_up_and_the_others_go_on(
    gates: Gates,
) -> None:
    gates.open_all("a")
    transport = RayTransport({"a": gates.client(), "b": failing("no data")}, LONGEST_SECONDS)
    events = drive(transport)
    reasons = [until(events, Left, "b").reason for _ in range(transport_module.MOST_FAILURES)]
    assert reasons[0] == "training failed: ValueError('no data')"
    assert str(reasons[-1]).startswith("given up after 5 failures in a row; the last: training")
    assert until(events, Received, "a").receipt.accepted


@pytest.mark.usefixtures("short_pauses")
def test_a_run_that_has_lost_everybody_ends_with_the_reason() -> None:
    events = drive(RayTransport({"a": failing("no data")}, LONGEST_SECONDS))
    with pytest.raises(
        ClusterError, match=r"no client is left; the last was given up: a: given up after 5"
    ):
        list(events)


def test_a_client_that_cannot_start_is_named() -> None:
    def broken() -> Train:
        raise OSError("no such data")

    with pytest.raises(ClusterError, match=r"client 'a' cannot start: OSError: no such data"):
        RayTransport({"a": broken}, LONGEST_SECONDS)


@pytest.mark.parametrize(("rule", "barrier"), [("fedavg", True), ("asyncfeded", False)])
def test_the_watchdog_names_who_is_waited_for(gates: Gates, rule: str, barrier: bool) -> None:
    transport = RayTransport(
        {"quick": gates.client(), "slow": gates.client()}, LONGEST_SECONDS, quiet_seconds=0.3
    )
    events = drive(transport, rules.REGISTRY[rule]())
    gates.open("quick", 0)
    until(events, Received, "quick")
    waiting = until(events, Waiting)
    assert waiting.clients == (("slow",) if barrier else ("quick", "slow"))
    assert waiting.barrier == barrier
    assert waiting.silent_seconds >= 0.3


def test_clients_join_late_and_leave_for_good(gates: Gates) -> None:
    for name in ("a", "b", "c"):
        gates.open_all(name)
    members = [Membership("a"), Membership("b", 0.5), Membership("c", 0.0, 2.0)]
    makers = {name: gates.client() for name in ("a", "b", "c")}
    transport = RayTransport(makers, LONGEST_SECONDS, memberships=members)
    happened: list[Event] = []
    heard_later = set()
    for event in drive(transport):
        happened.append(event)
        if isinstance(event, Received) and any(isinstance(e, Left) for e in happened):
            heard_later.add(event.receipt.client_id)
        if len(heard_later) == 2:
            break
    (joined,) = (e for e in happened if isinstance(e, Joined) and e.client_id == "b")
    assert joined.seconds >= 0.5
    (left,) = (event for event in happened if isinstance(event, Left))
    assert (left.client_id, left.reason) == ("c", None)
    assert heard_later == {"a", "b"}


def test_clients_that_leave_together_end_a_round_and_the_run(gates: Gates) -> None:
    gates.open("b", 0)
    members = [Membership("a", 0.0, 1.0), Membership("b", 0.0, 1.0), Membership("c", 0.0, 1e-4)]
    makers = {name: gates.client() for name in ("a", "b", "c")}
    events = list(drive(RayTransport(makers, LONGEST_SECONDS, memberships=members), rules.fedavg()))
    left = [event for event in events if isinstance(event, Left)]
    assert sorted(event.client_id for event in left) == ["a", "b", "c"]
    assert all(event.reason is None for event in left)
    assert isinstance(events[-1], Finished)


def test_who_answered_while_the_server_was_busy_is_not_late(gates: Gates) -> None:
    gates.open_all("a")
    deadlines = Scripted(LONGEST_SECONDS, 0.0)
    transport = RayTransport({"a": gates.client()}, LONGEST_SECONDS, deadlines=deadlines)
    events = drive(transport)
    until(events, Received, "a")
    answered, _ = ray.wait(list(transport._calls), timeout=LONGEST_SECONDS)
    assert len(answered) == 1, "its deadline was over when it was sent"
    assert isinstance(next(events), Received)


def test_time_that_is_not_training_is_learned_as_usual(
    gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ClientProcess.train

    def slowly(self: ClientProcess, parameters: Vector, order: Order) -> Answer:
        time.sleep(0.3)
        return train(self, parameters, order)

    monkeypatch.setattr(ClientProcess, "train", slowly)
    ray.cloudpickle.register_pickle_by_value(processes)
    gates.open_all("a")
    try:
        deadlines = Scripted()
        transport = RayTransport({"a": gates.client()}, LONGEST_SECONDS, deadlines=deadlines)
        until(drive(transport), Received, "a")
    finally:
        ray.cloudpickle.unregister_pickle_by_value(processes)
    assert deadlines.apart[0] >= 0.3


@pytest.mark.usefixtures("short_pauses")
def test_an_update_for_another_task_is_a_failure_of_the_client() -> None:
    def train(task: TrainTask) -> ClientUpdate:
        return replace(toy.toy_train(task), client_id="somebody else")

    events = drive(RayTransport({"a": lambda: train}, LONGEST_SECONDS))
    lost = until(events, Left, "a")
    assert str(lost.reason).startswith(
        "training failed: it answered another task, of 'somebody else', version 1, round 0"
    )


@pytest.mark.usefixtures("short_pauses")
def test_a_client_that_does_not_come_back_is_given_up_with_a_word(
    gates: Gates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, good = tmp_path, gates.client()

    def make() -> Train:
        if (folder / "gone").exists():
            raise OSError("the disk is gone")
        return good()

    gates.open_all("b")
    events = drive(RayTransport({"a": make, "b": gates.client()}, LONGEST_SECONDS))
    until(events, Joined, "b")
    (tmp_path / "gone").touch()
    os.kill(gates.process_of("a", 0), signal.SIGKILL)
    assert str(until(events, Left, "a").reason).startswith("process lost: ")
    last = str(until(events, Left, "a").reason)
    assert last.startswith("given up after 5 failures in a row; the last: process cannot start")
    assert last.endswith("OSError: the disk is gone")
    assert until(events, Received, "b").receipt.accepted


@pytest.mark.parametrize(
    ("nodes", "processes", "share"),
    [
        ([2], 10, 0.2),
        ([8], 3, 1.0),
        ([1, 1], 3, 0.5),
        ([4, 4, 4], 16, 0.6666),
        ([4, 0], 8, 0.5),
        ([], 3, 0.0),
    ],
)
def test_the_share_of_a_cpu_lets_all_fit_into_the_nodes(
    nodes: list[int], processes: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = [{"Alive": True, "Resources": {"CPU": float(cpus)}} for cpus in nodes]
    monkeypatch.setattr(ray, "nodes", lambda: [*cluster, {"Alive": False, "Resources": {}}])
    assert cpus_each(processes) == share


def test_a_run_ends_when_its_time_is_over(gates: Gates) -> None:
    events = list(drive(RayTransport({"a": gates.client()}, 0.5)))
    assert not [event for event in events if isinstance(event, Received)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": 0.0}, "seconds must be a finite number above 0; given 0.0"),
        ({"seconds": 1.0, "memberships": []}, "memberships must be at least one client"),
        (
            {"seconds": 1.0, "memberships": [Membership("a")] * 2},
            "memberships of client 'a' must not overlap; given 0 to inf and 0 to inf",
        ),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        RayTransport({}, **arguments)
