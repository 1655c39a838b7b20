"""Evaluation goes to the workers that train, and comes back the same from any of them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest

from asyncfeded.core.errors import SettingError, TrainingError
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Measure
from asyncfeded.simulation.workers import Workers, make_workers
from builders import vector

SIZES = (1, 2)


def train(task: TrainTask) -> ClientUpdate:
    delta = np.ones_like(task.parameters)
    return ClientUpdate(task.client_id, task.version, delta, 1, task.epochs, task.round)


def measure(parameters: Vector) -> Evaluation:
    return Evaluation({"accuracy": float(parameters.sum()), "loss": float(parameters[0])})


@contextmanager
def workers(count: int, how: Measure) -> Iterator[Workers]:
    with closing(make_workers(train, count, 2, how)) as pool:
        yield pool


@pytest.mark.parametrize("count", SIZES)
def test_parameters_are_measured_as_they_were_when_it_was_asked_for(count: int) -> None:
    with workers(count, measure) as pool:
        pending = [pool.evaluate(vector(i, 2 * i), float(i)) for i in range(10)]
        found = [wait() for wait in reversed(pending)]
    assert [evaluation.metrics["accuracy"] for evaluation in found] == [
        3.0 * i for i in range(9, -1, -1)
    ]


@pytest.mark.parametrize("count", SIZES)
def test_evaluation_and_training_do_not_get_in_each_others_way(count: int) -> None:
    with workers(count, measure) as pool:
        tasks = [TrainTask("a", 1, vector(1, 2), epochs=1, round=i) for i in range(6)]
        pending = []
        for task in tasks:
            pool.submit(task, due=10.0)
            pending.append(pool.evaluate(vector(1, 2), 1.0))
        assert [pool.result(task).round for task in tasks] == list(range(6))
        assert all(wait() == Evaluation({"accuracy": 3.0, "loss": 1.0}) for wait in pending)


@pytest.mark.parametrize("count", SIZES)
def test_what_evaluation_raises_is_raised_where_it_is_waited_for(count: int) -> None:
    def broken(_: Vector) -> Evaluation:
        raise ZeroDivisionError("no test data")

    def refused(_: Vector) -> Evaluation:
        raise SettingError("pass metrics=…")

    with workers(count, broken) as pool:
        wait = pool.evaluate(vector(0, 0), 0.0)
        with pytest.raises(TrainingError, match="evaluation failed: ZeroDivisionError"):
            wait()
    with workers(count, refused) as pool:
        wait = pool.evaluate(vector(0, 0), 0.0)
        with pytest.raises(SettingError, match="pass metrics="):
            wait()
