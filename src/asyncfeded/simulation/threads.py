"""Training ahead of time in threads, for training that releases the interpreter's lock.

Nothing is copied between processes and nothing is forked: a task costs a few microseconds to hand
over, which matters where a round takes less than a millisecond.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from queue import PriorityQueue
from typing import NamedTuple, TypeVar

from asyncfeded.core.errors import require
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.loop import Evaluation, Measure, Pending
from asyncfeded.simulation.jobs import Key, key_of, measured, trained, training_error

Outcome = TypeVar("Outcome")


class _Job(NamedTuple):
    """What a thread does next; no two have the same number, so that nothing else is compared."""

    due: float
    number: int
    work: Callable[[], None] | None


class ThreadPool:
    """Trains ahead of time on `workers` threads, the task that is due first before others."""

    def __init__(self, train: Train, workers: int, measure: Measure | None = None) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        self._train = train
        self._measure = measure
        self._jobs: PriorityQueue[_Job] = PriorityQueue()
        self._numbers = count()
        self._updates: dict[Key, Future[ClientUpdate]] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"asyncfeded-{index}", daemon=True)
            for index in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: TrainTask, due: float) -> None:
        """Queue a task by the time at which its result is due."""
        self._updates[key_of(task)] = self._queue(due, lambda: self._trained(task))

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task; a failure is raised when it is due."""
        return self._updates.pop(key_of(task)).result()

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        """Queue an evaluation before all training that is due later."""
        future: Future[Evaluation] = self._queue(
            seconds, lambda: measured(self._measure, parameters)
        )
        return future.result

    def close(self) -> None:
        """Let every thread end its task, and no other begin."""
        for _ in self._threads:
            self._jobs.put(_Job(float("-inf"), next(self._numbers), None))
        for thread in self._threads:
            thread.join()

    def _queue(self, due: float, make: Callable[[], Outcome]) -> Future[Outcome]:
        future: Future[Outcome] = Future()

        def work() -> None:
            try:
                future.set_result(make())
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                future.set_exception(error)

        self._jobs.put(_Job(due, next(self._numbers), work))
        return future

    def _trained(self, task: TrainTask) -> ClientUpdate:
        try:
            return trained(self._train, task)
        except Exception as error:
            raise training_error(key_of(task), repr(error)) from error

    def _work(self) -> None:
        """Run a thread: carry out what is due first until told to end."""
        while True:
            work = self._jobs.get().work
            if work is None:
                return
            work()
            # Whoever waits for the next job must not keep the last one's version alive.
            del work
