"""What becomes of suspended rounds: by the authors' law, by the earlier one, and as recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import toy
from asyncfeded import ClientUpdate, Server, TrainTask, rules
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.result import Result
from asyncfeded.runtime.events import Event, Finished, Received, RoundLost
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.selection import UniformSelection
from asyncfeded.simulation.suspension import read_hangs
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess
from asyncfeded.store.log import as_record

STEADY = DeviceModel({"a": Device(0.5, 5.0)}, jitter=0.0, transfer_spread=0.0)


def always(hang: float) -> dict[tuple[str, int], float]:
    """Every round of "slow" is lost, with this hang in rounds."""
    return {("slow", number): hang for number in range(100)}


def two_devices(recorded: dict[tuple[str, int], float]) -> DeviceModel:
    """Rounds of 1 s and of 2 s at K = 1, each second steady."""
    devices = {"fast": Device(1.0, 1.0), "slow": Device(2.0, 2.0)}
    return DeviceModel(devices, jitter=0.0, transfer_spread=0.0, recorded=recorded)


def two_clients(server: Server, devices: DeviceModel, seconds: float) -> list[Event]:
    """Clients whose updates are 1 and 100, the second with three times the examples."""

    def train(task: TrainTask) -> ClientUpdate:
        step, examples = (1.0, 1) if task.client_id == "fast" else (100.0, 3)
        delta = np.array([step], np.float32)
        return ClientUpdate(
            task.client_id, task.version, delta, examples, task.epochs, round=task.round
        )

    members = [Membership("fast"), Membership("slow")]
    transport = VirtualTransport(devices, InProcess(train), members, seconds)
    return list(run(server, transport, seconds))


@pytest.mark.parametrize("suspension", [0.1, 0.5, 0.9])
def test_a_share_p_of_the_rounds_is_lost(suspension: float) -> None:
    model = replace(STEADY, suspension=suspension)
    lost = [model.round_time("a", number, 10, 0).lost for number in range(4000)]
    assert np.mean(lost) == pytest.approx(suspension, abs=0.03)


def test_the_hangs_have_the_quantiles_of_the_authors() -> None:
    # h / T in their clients' rows, at 5, 25, 50 and 75 %.
    model = replace(STEADY, suspension=0.5)
    times = [model.round_time("a", number, 10, 0) for number in range(8000)]
    hangs = [time.hangs / 5.0 for time in times if time.lost]
    quantiles = np.quantile(hangs, [0.05, 0.25, 0.5, 0.75])
    assert quantiles == pytest.approx([0.14, 0.73, 1.42, 2.2], abs=0.1)
    assert max(hangs) < 3.0
    assert all(time.hangs == 0.0 for time in times if not time.lost)


def test_a_hang_is_as_long_as_its_own_round_makes_it() -> None:
    model = replace(STEADY, suspension=0.999)
    short, long = (model.round_time("a", 3, epochs, 0) for epochs in (1, 10))
    assert short.lost
    assert long.hangs == pytest.approx(10 * short.hangs)


def test_a_late_round_loses_nothing() -> None:
    model = replace(STEADY, suspension=0.9, hangs="delay")
    assert not any(model.round_time("a", number, 10, 0).lost for number in range(200))


def test_a_lost_round_gives_the_version_back_and_keeps_k() -> None:
    server = Server(np.zeros(1, np.float32), rules.asyncfeded(kappa=0.0, initial_epochs=1))
    events = two_clients(server, two_devices(always(0.5)), seconds=7.0)
    # Rounds of 2 s and hangs of 1 s: the slow client is heard of after 3 and 6 s.
    lost = [event for event in events if isinstance(event, RoundLost)]
    assert [(event.seconds, event.client_id, event.round) for event in lost] == [
        (3.0, "slow", 0),
        (6.0, "slow", 1),
    ]
    assert {event.reason for event in lost} == {"suspended"}
    taken = [event.seconds for event in events if isinstance(event, Received)]
    assert taken == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert server.lost == {"suspended": 2}
    assert server.stored_versions == 2  # the newest, and the one that the slow client has now


def test_a_lost_round_is_not_trained() -> None:
    trained = []

    def train(task: TrainTask) -> ClientUpdate:
        trained.append((task.client_id, task.round))
        return toy.toy_train(task)

    server = Server(toy.toy_initial(), rules.asyncfeded())
    members = [Membership(name) for name in toy.NAMES]
    transport = VirtualTransport(toy.toy_devices(0.5), InProcess(train), members, 30.0)
    events = list(run(server, transport, 30.0))
    lost = {(e.client_id, e.round) for e in events if isinstance(e, RoundLost)}
    assert len(lost) > 10
    assert lost.isdisjoint(trained)


def test_a_synchronous_round_waits_for_the_hang_and_averages_the_survivors() -> None:
    server = Server(np.zeros(1, np.float32), rules.fedavg(initial_epochs=1))
    events = two_clients(server, two_devices({("slow", 0): 0.5}), seconds=5.0)
    # The slow client trains for 2 s and hangs for 1 s. The first round is the fast one's: 1.
    # The second is the mean of 1 and of three times 100, at 5 s.
    versions = [(e.seconds, e.version) for e in events if isinstance(e, RoundLost | Finished)]
    assert versions == [(3.0, 2), (5.0, 3)]
    assert server.parameters.tolist() == [1.0 + (1.0 + 3 * 100.0) / 4]


def test_a_synchronous_round_of_which_nobody_survives_begins_again() -> None:
    server = Server(np.zeros(1, np.float32), rules.fedavg(initial_epochs=1))
    nobody = {("slow", 0): 0.0, ("fast", 0): 0.0}
    events = two_clients(server, two_devices(nobody), seconds=4.0)
    assert [e.version for e in events if isinstance(e, RoundLost)] == [1, 1]
    assert server.version == 2
    assert server.parameters.tolist() == [(1.0 + 3 * 100.0) / 4]


@pytest.mark.parametrize("name", rules.REGISTRY)
def test_every_rule_goes_on_while_rounds_are_lost(name: str) -> None:
    server = Server(toy.toy_initial(), rules.REGISTRY[name](), population=4)
    members = [Membership(client) for client in toy.NAMES]
    transport = VirtualTransport(toy.toy_devices(0.7), InProcess(toy.toy_train), members, 60.0)
    result = Result({})
    for event in run(server, transport, 60.0):
        result.add(event)
    assert result.lost_rounds["suspended"] > 10
    assert result.updates > 5
    assert server.version > 1
    assert np.isfinite(server.parameters).all()


def test_the_place_of_a_client_that_hung_goes_to_whoever_is_chosen() -> None:
    selection = UniformSelection(toy.NAMES, at_work=2)
    members = [Membership(name) for name in selection.first()]
    transport = VirtualTransport(toy.toy_devices(0.9), InProcess(toy.toy_train), members, 60.0)
    server = Server(toy.toy_initial(), rules.asyncfeded(), population=4)
    for _ in run(server, transport, 60.0, selection=selection):
        assert len(server.at_work) == 2 or server.version == 1
    assert sum(server.lost.values()) > 20


def test_a_round_that_ends_after_its_client_has_left_is_not_heard_of() -> None:
    members = [Membership("fast"), Membership("slow", leave_seconds=2.5)]
    devices = two_devices(always(0.5))

    def train(task: TrainTask) -> ClientUpdate:
        delta = np.ones(1, np.float32)
        return ClientUpdate(task.client_id, task.version, delta, 1, task.epochs, task.round)

    transport = VirtualTransport(devices, InProcess(train), members, 5.0)
    server = Server(np.zeros(1, np.float32), rules.asyncfeded(kappa=0.0, initial_epochs=1))
    assert not [e for e in run(server, transport, 5.0) if isinstance(e, RoundLost)]


def test_a_lost_round_has_a_line_in_the_log_and_a_place_in_the_summary() -> None:
    event = RoundLost(3.0, "slow", 7, "suspended", 12)
    assert as_record(event) == {
        "event": "lose",
        "seconds": 3.0,
        "client": "slow",
        "round": 7,
        "reason": "suspended",
        "version": 12,
    }
    result = Result({})
    result.add(event)
    assert result.summary()["lost_rounds"] == {"suspended": 1}
    assert result.clients["slow"].lost_rounds == 1


def test_recorded_hangs_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hangs.csv"
    path.write_text("client,round,hang\nclient-0,1,1.5\nclient-3,0,0\n")
    assert read_hangs(path) == {("client-0", 1): 1.5, ("client-3", 0): 0.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("client,round\na,1\n", "must have the columns client, round, hang; it has no hang"),
        ("", "it has no client, round, hang"),
        ("client,round,hang\na,one,1\n", "line 2: must be a client, the number of a round"),
        ("client,round,hang\na,0,1\na,1,nan\n", "line 3: must be a client, the number of a round"),
        ("client,round,hang\na,-1,1\n", "line 2"),
        ("client,round,hang\na,1\n", "line 2"),
    ],
)
def test_a_file_of_hangs_that_is_wrong_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "hangs.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=message):
        read_hangs(path)


def test_a_file_of_hangs_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"hangs cannot be read from .*none\.csv': No such file"):
        read_hangs(tmp_path / "none.csv")


def test_drawn_and_recorded_hangs_exclude_each_other() -> None:
    with pytest.raises(SettingError, match=r"suspension must be 0 with recorded hangs; given 0\.1"):
        replace(STEADY, suspension=0.1, recorded={})
    with pytest.raises(SettingError, match="hangs must be 'lose' with recorded hangs"):
        replace(STEADY, hangs="delay", recorded={})
    with pytest.raises(SettingError, match="hangs must be 'lose' or 'delay'; given 'forget'"):
        replace(STEADY, hangs="forget")  # type: ignore[arg-type]
