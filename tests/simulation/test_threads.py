"""Workers that are threads: the same bits as processes, the same words for what goes wrong."""

import threading
import weakref
from contextlib import closing
from queue import SimpleQueue
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toy
from asyncfeded import ClientUpdate, Server, TrainTask, rules
from asyncfeded.core.errors import SettingError, TrainingError
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.threads import ThreadPool, _Job, _Jobs
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import Workers, make_workers
from asyncfeded.store.log import EventLog
from builders import vector
from waiting import LONGEST_SECONDS, wait_until


def log_of(workers: Workers, rule: str = "asyncfeded") -> str:
    server = Server(toy.toy_initial(), rules.REGISTRY[rule]())
    members = [Membership(name) for name in toy.NAMES]
    transport = VirtualTransport(toy.toy_devices(0.2), workers, members, 20.0)
    log = EventLog()
    for event in run(server, transport, 20.0):
        log.write(event)
    return log.sha256


class LongRound:
    """Training in which the round of client "long" lasts until it is told to go."""

    def __init__(self) -> None:
        self.trained_by: dict[str, threading.Thread] = {}
        self.taken, self.go = threading.Event(), threading.Event()

    def __call__(self, task: TrainTask) -> ClientUpdate:
        self.trained_by[task.client_id] = threading.current_thread()
        if task.client_id == "long":
            self.taken.set()
            assert self.go.wait(LONGEST_SECONDS)
        return ClientUpdate(task.client_id, 1, task.parameters, 1, 1, task.round)


@pytest.mark.parametrize("rule", rules.REGISTRY)
def test_the_log_is_that_of_one_worker(rule: str) -> None:
    alone = log_of(make_workers(toy.toy_train, 1, toy.SIZE), rule)
    for workers in (1, 2, 4):
        assert log_of(ThreadPool(toy.toy_train, workers), rule) == alone


def test_alone_what_is_due_first_is_trained_first() -> None:
    begun: list[str] = []

    def train(task: TrainTask) -> ClientUpdate:
        begun.append(task.client_id)
        return ClientUpdate(task.client_id, 1, task.parameters, 1, 1, task.round)

    with closing(ThreadPool(train, 1)) as pool:
        tasks = [TrainTask(name, 1, vector(1), 1) for name in ("first", "late", "soon", "later")]
        for task, due in zip(tasks, [0.0, 5.0, 1.0, 9.0], strict=True):
            pool.submit(task, due)
        assert [pool.result(task).client_id for task in tasks] == [task.client_id for task in tasks]
    assert begun == ["first", "soon", "late", "later"]


def test_who_asks_for_results_takes_what_is_due_first_and_others_what_is_due_last() -> None:
    by_this_thread: list[str] = []
    by_another: list[str] = []
    this_thread, both_at_work = threading.current_thread(), threading.Barrier(2)

    def train(task: TrainTask) -> ClientUpdate:
        is_here = threading.current_thread() is this_thread
        (by_this_thread if is_here else by_another).append(task.client_id)
        both_at_work.wait(LONGEST_SECONDS)  # each job takes as long as the other thread's
        return ClientUpdate(task.client_id, 1, task.parameters, 1, 1, task.round)

    pool = ThreadPool(train, 2)
    dues = {"held": 0.0, "second": 2.0, "third": 3.0, "last": 4.0, "first": 1.0}
    tasks = {name: TrainTask(name, 1, vector(1), 1) for name in dues}
    with closing(pool):
        pool.submit(tasks["held"], dues["held"])
        wait_until(lambda: by_another)  # it is at this one, until this thread is at another
        for name in ("second", "third", "last", "first"):
            pool.submit(tasks[name], dues[name])
        both_at_work.wait(LONGEST_SECONDS)  # the other thread goes on
        for name in sorted(dues, key=dues.__getitem__):
            assert pool.result(tasks[name]).client_id == name
    assert by_this_thread == ["first", "second"]
    assert by_another == ["held", "last", "third"]


def test_who_waits_for_a_result_trains_meanwhile() -> None:
    training = LongRound()

    def train(task: TrainTask) -> ClientUpdate:
        if task.client_id == "short":
            training.go.set()
        return training(task)

    with closing(ThreadPool(train, 2)) as pool:
        long, short = (TrainTask(name, 1, vector(1), 1) for name in ("long", "short"))
        pool.submit(long, 0.0)
        assert training.taken.wait(LONGEST_SECONDS)
        pool.submit(short, 1.0)
        assert pool.result(long).client_id == "long"
    assert training.trained_by["short"] is threading.current_thread()
    assert training.trained_by["long"] is not training.trained_by["short"]


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from(["add", "first", "last"]), max_size=60),
    st.randoms(use_true_random=False),
)
def test_jobs_are_taken_from_either_end_of_those_that_are_due_soon(
    actions: list[str], random: Random
) -> None:
    soon = 3
    jobs, expected = _Jobs(soon), list[_Job]()
    for number, action in enumerate(actions):
        if action == "add":
            job = _Job(float(random.randrange(9)), number, lambda: None, SimpleQueue())
            jobs.add(job)
            expected = sorted([*expected, job])
        elif expected:
            if action == "first":
                assert jobs.take_first() is expected.pop(0)
            else:
                assert jobs.take_last_of_soon() is expected.pop(min(soon, len(expected)) - 1)
        assert len(jobs) == len(expected)


def test_a_helper_begins_with_the_last_of_what_is_due_soon_and_does_not_go_on_for_ever() -> None:
    begun: list[int] = []
    taken, go = threading.Event(), threading.Event()

    def train(task: TrainTask) -> ClientUpdate:
        taken.set()
        assert go.wait(LONGEST_SECONDS)
        begun.append(task.round)
        return ClientUpdate(task.client_id, 1, task.parameters, 1, 1, task.round)

    with closing(ThreadPool(train, 2)) as pool:
        tasks = [TrainTask("a", 1, vector(1), 1, number) for number in range(41)]
        pool.submit(tasks[0], 0.0)
        assert taken.wait(LONGEST_SECONDS)
        for task in tasks[1:]:
            pool.submit(task, float(task.round))
        go.set()
        wait_until(lambda: len(begun) >= 41)  # by the other thread alone
    assert begun == [0, *range(32, 41), *range(31, 8, -1), *range(1, 9)]


def test_training_that_raises_ends_the_run_with_the_client_s_name_and_no_thread() -> None:
    pool = ThreadPool(toy.failing_for("client-1", ValueError("no data")), 2)
    with pytest.raises(TrainingError, match=r"client 'client-1' failed in round 0: ValueError"):
        log_of(pool)
    assert not [thread for thread in threading.enumerate() if "asyncfeded" in thread.name]


def test_training_that_returns_something_else_is_stopped() -> None:
    pool = ThreadPool(lambda _: None, 2)  # type: ignore[arg-type, return-value]
    with pytest.raises(TrainingError, match="must return a ClientUpdate; given NoneType"):
        log_of(pool)


def test_evaluations_are_made_beside_training_and_raise_where_they_are_waited_for() -> None:
    def measure(parameters: Vector) -> Evaluation:
        if parameters[0] < 0:
            raise SettingError("pass metrics=…")
        return Evaluation({"accuracy": float(parameters.sum())})

    with closing(ThreadPool(toy.toy_train, 2, measure)) as pool:
        good = pool.evaluate(vector(1, 2), 0.0)
        bad = pool.evaluate(vector(-1, 2), 0.0)
        assert good().metrics["accuracy"] == 3.0
        with pytest.raises(SettingError, match="pass metrics"):
            bad()


def test_a_closed_pool_begins_nothing_that_was_still_waiting() -> None:
    begun: list[int] = []
    busy, go = threading.Event(), threading.Event()

    def train(task: TrainTask) -> ClientUpdate:
        begun.append(task.round)
        busy.set()
        go.wait(LONGEST_SECONDS)
        return ClientUpdate(task.client_id, 1, task.parameters, 1, 1, task.round)

    pool = ThreadPool(train, 2)
    tasks = [TrainTask("a", 1, vector(1), 1, number) for number in range(5)]
    pool.submit(tasks[0], due=0.0)
    assert busy.wait(LONGEST_SECONDS)
    for task in tasks[1:]:
        pool.submit(task, due=float(task.round))
    closing_thread = threading.Thread(target=pool.close)
    closing_thread.start()
    wait_until(lambda: pool._is_closed)
    go.set()
    closing_thread.join(LONGEST_SECONDS)
    assert begun == [0]


def test_a_thread_that_waits_for_work_holds_nothing_of_the_last_task() -> None:
    with closing(ThreadPool(toy.toy_train, 2)) as pool:
        parameters = toy.toy_initial()
        held = weakref.ref(parameters)
        task = TrainTask("client-0", 1, parameters, 1)
        pool.submit(task, 0.0)
        wait_until(lambda: not any(outcome.empty() for outcome in pool._outcomes.values()))
        pool.result(task)
        del task, parameters
        wait_until(lambda: held() is None)  # when the thread has come back to the queue
