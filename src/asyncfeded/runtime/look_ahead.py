"""Training ahead of time, in any process or thread: jobs by the time they are due."""

import heapq
from abc import ABC, abstractmethod
from itertools import count

from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Pending
from asyncfeded.runtime.jobs import Key, key_of

Queued = tuple[float, int, TrainTask | Vector]
"""The time at which a job is due, its number, and the task or the parameters to measure."""


def key_of_job(queued: Queued) -> Key:
    """The key of a job's result."""
    _, number, job = queued
    return key_of(job) if isinstance(job, TrainTask) else ("", number)


class LookAhead(ABC):
    """Takes jobs, and gives their results when they are asked for; a subclass carries them out.

    Evaluations go the same way as training and are due at once, so that the process that commits
    updates does not have to make them.
    """

    def __init__(self) -> None:
        self._numbers = count()

    def submit(self, task: TrainTask, due: float) -> None:
        """Queue a task by the time at which its result is due."""
        self._add((due, next(self._numbers), task))

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task; raises its failure."""
        update = self._wait_for(key_of(task))
        assert isinstance(update, ClientUpdate)
        return update

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        """Queue an evaluation before all training that is due later."""
        queued = seconds, next(self._numbers), parameters
        key = key_of_job(queued)
        self._add(queued)

        def wait() -> Evaluation:
            evaluation = self._wait_for(key)
            assert isinstance(evaluation, Evaluation)
            return evaluation

        return wait

    @abstractmethod
    def _add(self, queued: Queued) -> None:
        """Queue a job."""

    @abstractmethod
    def _wait_for(self, key: Key) -> object:
        """Wait for a job's result; raises its failure."""


class ProcessPool(LookAhead):
    """Hands jobs to other processes, and waits for what they report."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[Queued] = []
        self._done: dict[Key, ClientUpdate | Evaluation | AsyncFedEDError] = {}

    def _add(self, queued: Queued) -> None:
        heapq.heappush(self._waiting, queued)
        self._hand_out()

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
