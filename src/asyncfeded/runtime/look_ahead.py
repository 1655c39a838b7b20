"""Training ahead of time, in any process: jobs by the time they are due, results by key."""

import heapq
from abc import ABC, abstractmethod
from itertools import count

from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Pending
from asyncfeded.runtime.jobs import Key, key_of

Queued = tuple[float, int, TrainTask | Vector]
"""The time at which it is due, its number, and the task or the parameters to measure."""


def key_of_job(queued: Queued) -> Key:
    """The key of a job's result."""
    _, number, job = queued
    return key_of(job) if isinstance(job, TrainTask) else ("", number)


class LookAhead(ABC):
    """Queues jobs and waits for their results; a subclass carries them out.

    Evaluations go the same way as training and are due at once, so that the process that commits
    updates does not have to make them.
    """

    def __init__(self) -> None:
        self._waiting: list[Queued] = []
        self._numbers = count()
        self._done: dict[Key, ClientUpdate | Evaluation | AsyncFedEDError] = {}

    def submit(self, task: TrainTask, due: float) -> None:
        """Queue a task by the time at which its result is due."""
        self._add(due, task)

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task; raises its failure."""
        update = self._wait_for(key_of(task))
        assert isinstance(update, ClientUpdate)
        return update

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        """Queue an evaluation before all training that is due later."""
        key = key_of_job(self._add(seconds, parameters))

        def wait() -> Evaluation:
            evaluation = self._wait_for(key)
            assert isinstance(evaluation, Evaluation)
            return evaluation

        return wait

    def _add(self, due: float, job: TrainTask | Vector) -> Queued:
        queued = due, next(self._numbers), job
        heapq.heappush(self._waiting, queued)
        self._hand_out()
        return queued

    def _wait_for(self, key: Key) -> ClientUpdate | Evaluation:
        self._collect(wait=False)  # even if the result is there: idle workers get work
        while key not in self._done:
            self._collect(wait=True)
        outcome = self._done.pop(key)
        if isinstance(outcome, AsyncFedEDError):
            raise outcome
        return outcome

    @abstractmethod
    def _hand_out(self) -> None:
        """Give the jobs that are due first to free workers."""

    @abstractmethod
    def _collect(self, wait: bool) -> None:
        """Take in finished results and hand out jobs; with `wait`, wait for a result."""
