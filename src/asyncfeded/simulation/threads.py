"""Training ahead of time in threads, for training that releases the interpreter's lock.

Nothing is copied between processes and nothing is forked: a task costs a few microseconds to hand
over, which matters where a round takes less than a millisecond. Who waits for a result trains
meanwhile, so that there are as many threads as workers and none takes a core from another.

Only who asks for results can bring new tasks, so that thread takes what is due first: that is soon
needed, and mostly short. The others take what is due last, mostly the long rounds. If all took what
is due first, a long round would be begun when it is due, and everybody would wait for it.
"""

import threading
from bisect import insort
from collections.abc import Callable
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from asyncfeded.core.errors import require
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.jobs import Key, key_of, measured, trained_here
from asyncfeded.runtime.loop import Evaluation, Measure, Pending

DUE_FIRST, DUE_LAST = 0, -1
"""From which end of the jobs a thread takes its next."""


class _Job(NamedTuple):
    """What a thread does next; no two have the same number, so that nothing else is compared."""

    due: float
    number: int
    make: Callable[[], object] | None
    outcome: SimpleQueue[Any]
    """Gets what was made, or what was raised. A future would cost ten times as much."""


class ThreadPool:
    """Trains ahead of time on `workers` threads, of which who asks for results is one."""

    def __init__(self, train: Train, workers: int, measure: Measure | None = None) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        self._train = train
        self._measure = measure
        self._jobs: list[_Job] = []  # in order of when they are due
        self._lock = threading.Lock()
        self._ready: SimpleQueue[None] = SimpleQueue()  # as many as there are jobs to take
        self._numbers = count()
        self._updates: dict[Key, SimpleQueue[Any]] = {}
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
        update = self._await(self._updates.pop(key_of(task)))
        assert isinstance(update, ClientUpdate)
        return update

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        """Queue an evaluation before all training that is due later."""
        outcome = self._queue(seconds, partial(measured, self._measure, parameters))

        def wait() -> Evaluation:
            evaluation = self._await(outcome)
            assert isinstance(evaluation, Evaluation)
            return evaluation

        return wait

    def close(self) -> None:
        """Let every thread end its task, and no other begin."""
        for _ in self._threads:
            self._queue(float("inf"), None)
        for thread in self._threads:
            thread.join()
        self._jobs.clear()

    def _queue(self, due: float, make: Callable[[], object] | None) -> SimpleQueue[Any]:
        outcome: SimpleQueue[Any] = SimpleQueue()
        with self._lock:
            insort(self._jobs, _Job(due, next(self._numbers), make, outcome))
        self._ready.put(None)
        return outcome

    def _next_job(self, place: int, wait: bool) -> _Job:
        """Take a job from this end; raises Empty if there is none, unless told to wait."""
        self._ready.get(wait)
        with self._lock:
            return self._jobs.pop(place)

    def _await(self, outcome: SimpleQueue[Any]) -> object:
        """Carry out what is due first until this is there, or is all that is left."""
        while outcome.empty():
            try:
                job = self._next_job(DUE_FIRST, wait=False)
            except Empty:
                break
            _carry_out(job)
        made: object = outcome.get()
        if isinstance(made, BaseException):
            raise made
        return made

    def _work(self) -> None:
        """Run a thread: carry out what is due last until told to end."""
        while _carry_out(self._next_job(DUE_LAST, wait=True)):
            pass


def _carry_out(job: _Job) -> bool:
    """Do it, and let who asked for it know; False if it was the word to end."""
    if job.make is None:
        return False
    try:
        job.outcome.put(job.make())
    except Exception as error:  # noqa: BLE001 - raised where the result is asked for
        job.outcome.put(error)
    except BaseException as error:
        job.outcome.put(error)
        raise
    return True
