"""Training ahead of time in threads, for training that releases the interpreter's lock.

Nothing is copied between processes and nothing is forked. Handing over a task costs a few
microseconds, which matters where a round takes less than a millisecond.

The thread that asks for results is called the asker; the other threads are helpers. While the asker
waits for a result, it trains too, so that there are as many threads as workers.

The asker takes the job that is due first: only the asker can bring new tasks.
A helper takes the last of the jobs that are due soon, which is mostly a long round. If helpers took
the job that is due first, a long round would start only when it is due, and all would wait for it.
An update takes memory until it is asked for. So when many updates are there, helpers take the job
that is due first, too.
"""

import heapq
import threading
from bisect import insort
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from asyncfeded.core.errors import require
from asyncfeded.core.messages import Train, TrainTask
from asyncfeded.runtime.evaluation import Measure
from asyncfeded.runtime.jobs import Key, measured, trained_here
from asyncfeded.runtime.look_ahead import LookAhead, Queued, key_of_job

SOON_PER_WORKER = 16
"""Per worker: how many jobs count as due soon, so that a long round begins in time. Once more
updates than this are made ahead, helpers take the job that is due first."""


class _Job(NamedTuple):
    """What a thread does next; no two have the same number, so that nothing else is compared."""

    due: float
    number: int
    make: Callable[[], object]
    outcome: SimpleQueue[Any]
    """Gets what was made, or what was raised. A future would cost ten times as much."""


class _Jobs:
    """Jobs by when they are due: the first `soon` of them in order, the others in a heap."""

    def __init__(self, soon: int) -> None:
        self._most = soon
        self._soon: list[_Job] = []
        self._later: list[_Job] = []

    def __len__(self) -> int:
        return len(self._soon) + len(self._later)

    def add(self, job: _Job) -> None:
        insort(self._soon, job)
        if len(self._soon) > self._most:
            heapq.heappush(self._later, self._soon.pop())

    def take_first(self) -> _Job:
        return self._take(0)

    def take_last_of_soon(self) -> _Job:
        return self._take(-1)

    def _take(self, place: int) -> _Job:
        job = self._soon.pop(place)
        if self._later:
            self._soon.append(heapq.heappop(self._later))
        return job


class ThreadPool(LookAhead):
    """Trains ahead of time on `workers` threads, one of which asks for the results."""

    def __init__(self, train: Train, workers: int, measure: Measure | None = None) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        super().__init__()
        self._train = train
        self._measure = measure
        self._most_ahead = SOON_PER_WORKER * workers
        self._jobs = _Jobs(self._most_ahead)
        self._lock = threading.Lock()
        self._ready: SimpleQueue[None] = SimpleQueue()  # as many as there are jobs to take
        self._outcomes: dict[Key, SimpleQueue[Any]] = {}
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"asyncfeded-{index}", daemon=True)
            for index in range(1, workers)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Let every thread finish its task, and begin no other."""
        self._is_closed = True
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()

    def _add(self, queued: Queued) -> None:
        due, number, job = queued
        if isinstance(job, TrainTask):
            make: Callable[[], object] = partial(trained_here, self._train, job)
        else:
            make = partial(measured, self._measure, job)
        outcome = self._outcomes[key_of_job(queued)] = SimpleQueue()
        with self._lock:
            self._jobs.add(_Job(due, number, make, outcome))
        self._ready.put(None)

    def _wait_for(self, key: Key) -> object:
        """Carry out jobs, the first due first, until this result is there or no job is left."""
        outcome = self._outcomes.pop(key)
        while outcome.empty() and (job := self._job_for_asker()) is not None:
            _carry_out(job)
        made: object = outcome.get()
        if isinstance(made, BaseException):
            raise made
        return made

    def _job_for_asker(self) -> _Job | None:
        """Take what is due first; None if there is nothing."""
        try:
            self._ready.get(block=False)
        except Empty:
            return None
        with self._lock:
            return self._jobs.take_first()

    def _work(self) -> None:
        """Run a helping thread: carry out jobs until told to end."""
        while (job := self._job_for_helper()) is not None:
            _carry_out(job)
            del job  # and all that it holds, before the next one is waited for

    def _job_for_helper(self) -> _Job | None:
        self._ready.get()
        with self._lock:
            if self._is_closed:
                return None
            begun = len(self._outcomes) - len(self._jobs)
            if begun > self._most_ahead:
                return self._jobs.take_first()
            return self._jobs.take_last_of_soon()


def _carry_out(job: _Job) -> None:
    """Do a job, and hand over what it made or raised."""
    try:
        job.outcome.put(job.make())
    except Exception as error:  # noqa: BLE001 - raised where the result is asked for
        job.outcome.put(error)
    except BaseException as error:
        job.outcome.put(error)
        raise
