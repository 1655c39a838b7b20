"""Training ahead of time in threads, for training that releases the interpreter's lock.

Nothing is copied between processes and nothing is forked: a task costs a few microseconds to hand
over, which matters where a round takes less than a millisecond. Who waits for a result trains
meanwhile, so that there are as many threads as workers and none takes a core from another.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from asyncfeded.core.errors import require
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.jobs import Key, key_of, measured, trained_here
from asyncfeded.runtime.loop import Measure, Pending

Outcome = TypeVar("Outcome")


class _Job(NamedTuple):
    """What a thread does next; no two have the same number, so that nothing else is compared."""

    due: float
    number: int
    make: Callable[[], object] | None
    future: Future[Any]


class ThreadPool:
    """Trains ahead of time on `workers` threads, the task that is due first before others.

    The thread that asks for results is one of them.
    """

    def __init__(self, train: Train, workers: int, measure: Measure | None = None) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        self._train = train
        self._measure = measure
        self._jobs: list[_Job] = []
        self._lock = threading.Lock()
        self._ready: SimpleQueue[None] = SimpleQueue()  # as many as there are jobs to take
        self._numbers = count()
        self._updates: dict[Key, Future[ClientUpdate]] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"asyncfeded-{index}", daemon=True)
            for index in range(1, workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: TrainTask, due: float) -> None:
        """Queue a task by the time at which its result is due."""
        make = partial(trained_here, self._train, task)
        self._updates[key_of(task)] = self._queue(due, make)

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task; a failure is raised when it is due."""
        return self._await(self._updates.pop(key_of(task)))

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        """Queue an evaluation before all training that is due later."""
        future = self._queue(seconds, partial(measured, self._measure, parameters))
        return partial(self._await, future)

    def close(self) -> None:
        """Let every thread end its task, and no other begin."""
        for _ in self._threads:
            self._queue(float("-inf"), None)
        for thread in self._threads:
            thread.join()
        for job in self._jobs:
            job.future.cancel()
        self._jobs.clear()

    def _queue(self, due: float, make: Callable[[], Outcome] | None) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        with self._lock:
            heappush(self._jobs, _Job(due, next(self._numbers), make, future))
        self._ready.put(None)
        return future

    def _next_job(self, wait: bool) -> _Job:
        """Take what is due first; raises Empty if there is nothing, unless told to wait."""
        self._ready.get(wait)
        with self._lock:
            return heappop(self._jobs)

    def _await(self, future: Future[Outcome]) -> Outcome:
        """Carry out what is due first until this is done, or is all that is left."""
        while not future.done():
            try:
                job = self._next_job(wait=False)
            except Empty:
                break
            _carry_out(job)
        return future.result()

    def _work(self) -> None:
        """Run a thread: carry out what is due first until told to end."""
        while _carry_out(self._next_job(wait=True)):
            pass


def _carry_out(job: _Job) -> bool:
    """Do it, and let who asked for it know; False if it was the word to end."""
    if job.make is None:
        return False
    try:
        job.future.set_result(job.make())
    except Exception as error:  # noqa: BLE001 - raised where the result is asked for
        job.future.set_exception(error)
    except BaseException as error:
        job.future.set_exception(error)
        raise
    return True
