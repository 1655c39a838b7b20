"""Look-ahead training for the virtual clock on a Ray cluster.

The virtual clock decides what is trained and in which order results are committed; where it is
trained changes no bit. A worker that is lost is started again, and its jobs are done again.
"""

import heapq
import time
from typing import Any

import ray
from ray.exceptions import RayError

from asyncfeded.cluster.actors import (
    START_SECONDS,
    Actor,
    cpus_each,
    in_one_line,
    wait_until_prepared,
)
from asyncfeded.cluster.processes import Answer, MakeMeasure, MakeTrain, WorkerProcess
from asyncfeded.cluster.published import Published
from asyncfeded.core.errors import AsyncFedEDError, ClusterError, TrainingError, require
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.jobs import Key, order_of, training_error
from asyncfeded.runtime.look_ahead import ProcessPool, Queued, key_of_job

CALLS_PER_WORKER = 2
"""One that is carried out and one that waits, so that a worker never waits for us."""
MOST_LOSSES = 10
"""How many jobs may be lost in a row: a job that kills its worker would do so for ever."""


class RayWorkerPool(ProcessPool):
    """Trains ahead of time on `workers` processes of a Ray, the task due first before others.

    Each asks for `cpus` of the cluster; without, for the largest share at which all fit.
    """

    def __init__(
        self,
        make_train: MakeTrain | None,
        workers: int,
        make_measure: MakeMeasure | None = None,
        cpus: float | None = None,
    ) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        super().__init__()
        recipes = (make_train, make_measure)
        share = cpus_each(workers) if cpus is None else cpus
        self._actors = [Actor(WorkerProcess, recipes, share) for _ in range(workers)]
        self._idle = [index for _ in range(CALLS_PER_WORKER) for index in range(workers)]
        self._losses = 0
        self._lost_since: float | None = None
        self._calls: dict[Any, tuple[int, Queued | None]] = {}  # None: it is being prepared
        self._published = Published()
        try:
            named = {f"worker {index}": actor for index, actor in enumerate(self._actors)}
            wait_until_prepared(named, "workers")
        except ClusterError:
            self.close()
            raise

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        self._calls.clear()
        for actor in self._actors:
            actor.end()
        self._actors.clear()

    def _hand_out(self) -> None:
        """Give the jobs that are due first to the workers with the fewest."""
        while self._idle and self._waiting:
            queued = heapq.heappop(self._waiting)
            job = queued[-1]
            index = self._idle.pop(0)
            actor = self._actors[index]
            if isinstance(job, TrainTask):
                reference = actor.call("train", self._published(job.parameters), order_of(job))
            else:
                reference = actor.call("measure", self._published(job))
            self._calls[reference] = index, queued

    def _collect(self, wait: bool) -> None:
        if self._calls:
            ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=None if wait else 0)
            for reference in ready:
                self._take_in(reference)

    def _take_in(self, reference: Any) -> None:
        index, queued = self._calls.pop(reference)
        try:
            answer: Answer | Evaluation | str | bool | None = ray.get(reference)
            lost = "it was started again"
        except RayError as error:
            answer, lost = None, in_one_line(error)
        if answer is None:
            self._lose(index, queued, lost)
            return
        self._idle.append(index)
        if queued is not None:
            assert not isinstance(answer, bool)
            self._losses = 0
            self._lost_since = None
            key = key_of_job(queued)
            self._done[key] = _outcome(key, answer)
        self._hand_out()

    def _lose(self, index: int, queued: Queued | None, reason: str) -> None:
        """Queue a lost worker's job again, and give the worker no other until it is back."""
        now = time.monotonic()
        self._lost_since = now if self._lost_since is None else self._lost_since
        if queued is not None:
            self._losses += 1
            heapq.heappush(self._waiting, queued)
        if self._losses > MOST_LOSSES or now - self._lost_since > START_SECONDS:
            raise ClusterError(
                f"workers were lost, {self._losses} jobs in a row; there was no result for "
                f"{now - self._lost_since:.0f} s; the last: {reason}"
            )
        self._calls[self._actors[index].prepare()] = index, None


def _outcome(
    key: Key, answer: Answer | Evaluation | str
) -> ClientUpdate | Evaluation | AsyncFedEDError:
    if isinstance(answer, Evaluation):
        return answer
    if isinstance(answer, str):
        what, _, notes = answer.partition("\n")
        failure = TrainingError(f"evaluation failed: {what}")
        failure.add_note(notes)
        return failure
    return training_error(key, str(answer.failure)) if answer.update is None else answer.update
