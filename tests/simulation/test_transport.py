"""The virtual clock as a whole: against the reference, for any number of workers."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

import toy
from asyncfeded import ClientUpdate, Server, TrainTask, VersionHistory, rules
from asyncfeded.core.errors import SettingError, TrainingError
from asyncfeded.core.messages import Train
from asyncfeded.runtime.devices import RoundTime
from asyncfeded.runtime.events import Event, Joined, Left, Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership, Stays
from asyncfeded.simulation.pool import WorkerPool
from asyncfeded.simulation.suspension import Hangs
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess, Workers, make_workers
from asyncfeded.store.log import EventLog
from reference_simulator import simulate
from waiting import wait_until

EVERYBODY = [Membership(name) for name in toy.NAMES]


def play(
    server: Server,
    workers: Workers,
    seconds: float = 30.0,
    suspension: float = 0.2,
    memberships: list[Membership] = EVERYBODY,
    hangs: Hangs = "lose",
) -> tuple[list[Event], str]:
    """All events of a run, and the digest of its log."""
    devices = toy.toy_devices(suspension, hangs=hangs)
    transport = VirtualTransport(devices, workers, memberships, seconds)
    log, events = EventLog(), []
    for event in run(server, transport, seconds):
        log.write(event)
        events.append(event)
    return events, log.sha256


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(("suspension", "hangs"), [(0.0, "lose"), (0.5, "lose"), (0.5, "delay")])
def test_the_engine_makes_the_versions_of_the_reference_simulator(
    suspension: float, hangs: Hangs, workers: int
) -> None:
    history = VersionHistory("everything")
    server = Server(toy.toy_initial(), rules.asyncfeded(), history=history)
    pool = make_workers(toy.toy_train, workers, toy.SIZE)
    play(server, pool, suspension=suspension, hangs=hangs)
    expected = simulate(
        toy.toy_initial(),
        toy.toy_train,
        toy.toy_devices(suspension, hangs=hangs),
        toy.NAMES,
        seconds=30.0,
        lam=5.0,
        eps=5.0,
        gamma_bar=3.0,
        kappa=1.0,
    )
    assert len(expected) > 30
    assert server.version == len(expected)
    for number, parameters in enumerate(expected, start=1):
        assert history[number].tobytes() == parameters.tobytes()


class Rush:
    """Devices of one's own, on which everything takes three times as long between 10 and 20 s."""

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        factor = 3.0 if 10 <= begins < 20 else 1.0
        number = toy.NAMES.index(client_id)
        return RoundTime(0.0, 0.0, factor * epochs * (0.05 + 0.013 * number), 0.0)


def test_devices_that_look_at_the_clock_agree_with_the_reference_simulator() -> None:
    history = VersionHistory("everything")
    server = Server(toy.toy_initial(), rules.asyncfeded(), history=history)
    transport = VirtualTransport(Rush(), InProcess(toy.toy_train), EVERYBODY, 30.0)
    events = list(run(server, transport, 30.0))
    expected = simulate(
        toy.toy_initial(),
        toy.toy_train,
        Rush(),
        toy.NAMES,
        seconds=30.0,
        lam=5.0,
        eps=5.0,
        gamma_bar=3.0,
        kappa=1.0,
    )
    assert server.version == len(expected)
    assert history[server.version].tobytes() == expected[-1].tobytes()
    slow = [e for e in events if isinstance(e, Received) and 10 <= e.seconds < 20]
    assert 0 < len(slow) < len(expected) / 4


@pytest.mark.slow
@pytest.mark.parametrize("name", rules.REGISTRY)
def test_the_log_is_the_same_to_the_bit_for_any_number_of_workers(name: str) -> None:
    digests = set()
    for workers in (1, 1, 2, 4):
        server = Server(toy.toy_initial(), rules.REGISTRY[name]())
        digests.add(play(server, make_workers(toy.toy_train, workers, toy.SIZE))[1])
    assert len(digests) == 1


def test_synchronous_clients_wait_for_the_slowest() -> None:
    server = Server(toy.toy_initial(), rules.fedavg())
    events, _ = play(server, InProcess(toy.toy_train), suspension=0.0)
    arrivals = [event for event in events if isinstance(event, Received)]
    for start in range(0, len(arrivals) - 3, 4):
        whole_round = arrivals[start : start + 4]
        assert {event.receipt.client_id for event in whole_round} == set(toy.NAMES)
        assert whole_round[-1].receipt.client_id == "client-3"
        assert len(whole_round[-1].receipt.tasks) == 4


def test_clients_can_join_late_and_leave_for_good() -> None:
    memberships = [
        Membership("client-0"),
        Membership("client-1", join_seconds=5.0),
        Membership("client-2", leave_seconds=12.0),
    ]
    server = Server(toy.toy_initial(), rules.asyncfeded())
    events, _ = play(server, InProcess(toy.toy_train), memberships=memberships)
    assert [(e.client_id, e.seconds) for e in events if isinstance(e, Joined)] == [
        ("client-0", 0.0),
        ("client-2", 0.0),
        ("client-1", 5.0),
    ]
    assert [(e.client_id, e.seconds) for e in events if isinstance(e, Left)] == [("client-2", 12.0)]
    times: dict[str, list[float]] = {}
    for event in events:
        if isinstance(event, Received):
            times.setdefault(event.receipt.client_id, []).append(event.seconds)
    assert min(times["client-1"]) > 5.0
    assert max(times["client-2"]) < 12.0
    assert server.clients == ("client-0", "client-1")


def test_a_client_may_come_and_go_again_and_again() -> None:
    # Its rounds take 4 s and more at K = 10: it comes back twice, once at the moment it leaves.
    spans = [(20.0, 26.0), (0.0, 6.0), (6.0, 11.0)]
    memberships = [*EVERYBODY[:3], *(Membership("client-3", *span) for span in spans)]
    server = Server(toy.toy_initial(), rules.asyncfeded())
    events, _ = play(server, InProcess(toy.toy_train), suspension=0.0, memberships=memberships)
    mine = [event for event in events if getattr(event, "client_id", "") == "client-3"]
    assert [(type(event), event.seconds) for event in mine] == [
        *((Joined, 0.0), (Left, 6.0), (Joined, 6.0), (Left, 11.0)),
        *((Joined, 20.0), (Left, 26.0)),
    ]
    updates = [
        event
        for event in events
        if isinstance(event, Received) and event.receipt.client_id == "client-3"
    ]
    assert all(event.receipt.accepted for event in updates)
    # A round that it takes with it when it leaves has a number, too.
    assert [event.round for event in updates] == [0, 2, 4]
    back = [event.epochs for event in mine if isinstance(event, Joined)]
    assert back[0] == 10
    kept = [event.receipt.next_task.epochs for event in updates if event.receipt.next_task]
    assert back[1:] == kept[:2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_leaver_lets_a_synchronous_round_end(workers: int) -> None:
    memberships = [*EVERYBODY[:3], Membership("client-3", leave_seconds=1.0)]
    server = Server(toy.toy_initial(), rules.fedavg())
    events, _ = play(
        server,
        make_workers(toy.toy_train, workers, toy.SIZE),
        suspension=0.0,
        memberships=memberships,
    )
    (left,) = (event for event in events if isinstance(event, Left))
    after = [event for event in events[events.index(left) :] if isinstance(event, Received)]
    assert len(after) > 10
    assert "client-3" not in {event.receipt.client_id for event in after}


def test_a_leaver_s_training_is_dropped_for_any_number_of_workers() -> None:
    memberships = [*EVERYBODY[:3], Membership("client-3", leave_seconds=7.3)]
    digests = {
        play(
            Server(toy.toy_initial(), rules.asyncfeded()),
            make_workers(toy.toy_train, workers, toy.SIZE),
            memberships=memberships,
        )[1]
        for workers in (1, 2, 3)
    }
    assert len(digests) == 1


def test_what_would_arrive_after_the_end_is_not_trained() -> None:
    trained = []

    def counting(task: TrainTask) -> ClientUpdate:
        trained.append((task.client_id, task.round))
        return toy.toy_train(task)

    server = Server(toy.toy_initial(), rules.asyncfeded())
    play(server, InProcess(counting))
    assert len(trained) == server.accepted


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_updates_of_a_client_are_refused_and_the_run_goes_on(workers: int) -> None:
    def train(task: TrainTask) -> ClientUpdate:
        update = toy.toy_train(task)
        if task.client_id == "client-1":
            size = toy.SIZE + task.round % 2
            bad = np.full(size, np.nan, np.float32)
            return ClientUpdate(task.client_id, task.version, bad, 1, task.epochs, task.round)
        return update

    server = Server(toy.toy_initial(), rules.asyncfeded())
    play(server, make_workers(train, workers, toy.SIZE))
    assert set(server.refused) == {"not_finite", "wrong_length"}
    assert server.refused.total() > 10
    assert server.accepted > 30


def failing(task: TrainTask) -> ClientUpdate:
    if task.client_id == "client-2":
        raise ZeroDivisionError("no data left")
    return toy.toy_train(task)


def killed(task: TrainTask) -> ClientUpdate:
    if task.client_id == "client-2":
        os.kill(os.getpid(), signal.SIGKILL)
    return toy.toy_train(task)


@pytest.mark.parametrize("workers", [1, 2])
def test_training_that_raises_ends_the_run_with_the_client_s_name(workers: int) -> None:
    server = Server(toy.toy_initial(), rules.asyncfeded())
    with pytest.raises(TrainingError, match="client 'client-2' failed in round 0: ZeroDivision"):
        play(server, make_workers(failing, workers, toy.SIZE))


def test_a_worker_that_dies_ends_the_run_and_leaves_no_process() -> None:
    pool = WorkerPool(killed, 2, toy.SIZE)
    server = Server(toy.toy_initial(), rules.asyncfeded())
    with pytest.raises(TrainingError, match=r"ended by itself \(exit code -9\)"):
        play(server, pool)
    assert not any(process.is_alive() for process in pool._processes)


def all_threads(task: TrainTask) -> ClientUpdate:
    from threadpoolctl import threadpool_info

    threads = {pool["num_threads"] for pool in threadpool_info()}
    assert threads <= {1}, threads
    return toy.toy_train(task)


def test_a_worker_computes_on_one_thread() -> None:
    server = Server(toy.toy_initial(), rules.asyncfeded())
    play(server, WorkerPool(all_threads, 2, toy.SIZE), seconds=3.0)
    assert server.accepted > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Membership("a", join_seconds=-1), "join_seconds must be at least 0; given -1"),
        (lambda: Membership("a", 5.0, 5.0), "leave_seconds must be after the client joins at 5.0"),
        (lambda: make_workers(toy.toy_train, 0, 1), "workers must be at least 1; given 0"),
        (
            lambda: VirtualTransport(toy.toy_devices(), InProcess(toy.toy_train), [], 0.0),
            "seconds must be a finite number above 0; given 0.0",
        ),
        (
            lambda: VirtualTransport(
                toy.toy_devices(), InProcess(toy.toy_train), [Membership("a")] * 2, 1.0
            ),
            "memberships of client 'a' must not overlap; given 0 to inf and 0 to inf",
        ),
        (
            lambda: Stays([Membership("b", 100, 200), Membership("a"), Membership("b", 0, 101.5)]),
            "memberships of client 'b' must not overlap; given 0 to 101.5 and 100 to 200",
        ),
    ],
)
def test_bad_settings_are_refused_by_name(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()


def without_round(task: TrainTask) -> ClientUpdate:
    return replace(toy.toy_train(task), round=None)


def from_another_version(task: TrainTask) -> ClientUpdate:
    wrong = task.client_id == "client-1"
    return replace(toy.toy_train(task), version=task.version + 7 * wrong)


def in_numpy_counts(task: TrainTask) -> ClientUpdate:
    counts = {"epochs": np.int64(task.epochs), "num_examples": np.int64(3)}
    return replace(toy.toy_train(task), **counts)  # type: ignore[arg-type]


@pytest.mark.parametrize("train", [without_round, from_another_version, in_numpy_counts])
def test_what_a_client_says_reaches_the_server_unchanged_from_any_worker(train: Train) -> None:
    digests = {
        play(Server(toy.toy_initial(), rules.asyncfeded()), make_workers(train, n, toy.SIZE))[1]
        for n in (1, 2)
    }
    assert len(digests) == 1


def writing(task: TrainTask) -> ClientUpdate:
    task.parameters[0] = 1
    return toy.toy_train(task)


def returning_nothing(task: TrainTask) -> ClientUpdate:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("train", "message"),
    [(writing, "read-only"), (returning_nothing, "must return a ClientUpdate")],
)
def test_training_that_breaks_its_word_is_stopped(train: Train, message: str, workers: int) -> None:
    server = Server(toy.toy_initial(), rules.asyncfeded())
    with pytest.raises(TrainingError, match=message):
        play(server, make_workers(train, workers, toy.SIZE))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_leaver_s_failing_training_concerns_nobody(workers: int) -> None:
    # client-2's first round takes more than a second.
    memberships = [*EVERYBODY[:2], Membership("client-2", leave_seconds=0.5)]
    server = Server(toy.toy_initial(), rules.asyncfeded())
    pool = make_workers(failing, workers, toy.SIZE)
    play(server, pool, seconds=5.0, suspension=0.0, memberships=memberships)
    assert server.accepted > 5


def parent_of_workers(connection: Connection) -> None:
    pool = WorkerPool(toy.toy_train, 2, toy.SIZE)
    connection.send([process.pid for process in pool._processes])
    signal.pause()


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().split()[2] != "Z"


def test_workers_end_with_their_parent_however_it_ends() -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    parent = context.Process(target=parent_of_workers, args=(sender,))
    parent.start()
    workers = receiver.recv()
    parent.kill()
    parent.join()
    wait_until(lambda: not any(map(is_running, workers)))
