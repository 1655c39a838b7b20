"""Look-ahead training on Ray, and what travels through the object store."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import ray

import toy
from asyncfeded import Server, rules
from asyncfeded.cluster import workers as workers_module
from asyncfeded.cluster.published import INLINE_BYTES, Published
from asyncfeded.cluster.workers import RayWorkerPool
from asyncfeded.core.errors import ClusterError, TrainingError
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Measure
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess, Workers
from asyncfeded.store.log import EventLog

pytestmark = pytest.mark.usefixtures("ray_here")

SECONDS = 12.0


def digest(workers: Workers) -> str:
    members = [Membership(name) for name in toy.NAMES]
    transport = VirtualTransport(toy.toy_devices(suspension=0.2), workers, members, SECONDS)
    server = Server(toy.toy_initial(), rules.asyncfeded())
    log = EventLog()
    for event in run(server, transport, SECONDS, workers.evaluate):
        log.write(event)
    return log.sha256


def toy_measure(parameters: Vector) -> Evaluation:
    return Evaluation({"accuracy": float(parameters[0]), "loss": float(np.abs(parameters).sum())})


def make_train() -> Train:
    return toy.toy_train


def make_measure() -> Measure:
    return toy_measure


@pytest.fixture(autouse=True)
def _these_functions_travel_whole() -> None:
    here = sys.modules[__name__]
    ray.cloudpickle.register_pickle_by_value(here)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_log_is_that_of_one_process(workers: int) -> None:
    expected = digest(InProcess(toy.toy_train, toy_measure))
    assert digest(RayWorkerPool(make_train, workers, make_measure)) == expected


def test_a_worker_that_is_killed_changes_no_bit(tmp_path: Path) -> None:
    died = tmp_path / "died"

    def train(task: TrainTask) -> ClientUpdate:
        if task.client_id == "client-1" and task.round == 2 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return toy.toy_train(task)

    expected = digest(InProcess(toy.toy_train, toy_measure))
    assert digest(RayWorkerPool(lambda: train, 2, make_measure)) == expected
    assert died.exists()


def test_workers_that_always_die_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(task: TrainTask) -> ClientUpdate:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    monkeypatch.setattr(workers_module, "MOST_LOSSES", 1)
    with pytest.raises(ClusterError, match=r"workers were lost, \d+ jobs .* the last: "):
        digest(RayWorkerPool(lambda: train, 1, make_measure))


def test_a_failure_is_named_by_client_and_round() -> None:
    train = toy.failing_for("client-2", ValueError("bad labels"))
    with pytest.raises(
        TrainingError, match=r"training of client 'client-2' failed in round 0: ValueError\('bad"
    ):
        digest(RayWorkerPool(lambda: train, 2, make_measure))


def test_a_failed_evaluation_is_named() -> None:
    def measure(parameters: Vector) -> Evaluation:
        raise ValueError("no test data")

    with pytest.raises(TrainingError, match=r"evaluation failed: ValueError\('no test data'\)"):
        digest(RayWorkerPool(make_train, 1, lambda: measure))


def test_workers_that_cannot_start_say_why() -> None:
    def broken() -> Train:
        raise OSError("no such data")

    with pytest.raises(ClusterError, match=r"worker 0 cannot start: OSError: no such data"):
        RayWorkerPool(broken, 1)


def test_a_version_is_put_into_the_object_store_once() -> None:
    published = Published()
    large = np.zeros(INLINE_BYTES, dtype=np.float32)
    place = published(large)
    assert isinstance(place, ray.ObjectRef)
    assert published(large) is place
    other = published(large.copy())
    assert isinstance(other, ray.ObjectRef)
    assert other != place


def test_a_small_version_goes_with_the_call() -> None:
    small = np.arange(10, dtype=np.float32)
    place = Published()(small)
    np.testing.assert_array_equal(place, small)
    assert place is not small
