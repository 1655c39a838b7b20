"""Where training happens: here when it is due, or ahead of time in other processes or threads."""

from typing import Literal, Protocol

from asyncfeded.core.errors import require
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Measure, Pending
from asyncfeded.runtime.jobs import measured, trained_here
from asyncfeded.runtime.memory import keep_freed_memory
from asyncfeded.simulation.pool import WorkerPool
from asyncfeded.simulation.threads import ThreadPool

Kind = Literal["processes", "threads"]
"""What workers are: threads where training releases the interpreter's lock, else processes."""


class Workers(Protocol):
    """Trains tasks; every result is asked for once, in the order of virtual time."""

    def submit(self, task: TrainTask, due: float) -> None:
        """Train this task; tasks that are due sooner go first."""

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task."""

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        """Begin to measure parameters; return what waits for the result."""

    def close(self) -> None:
        """End all training."""


class InProcess:
    """Trains and measures in this process, when the result is asked for."""

    def __init__(self, train: Train, measure: Measure | None = None) -> None:
        self._train = train
        self._measure = measure

    def submit(self, task: TrainTask, due: float) -> None:
        """Nothing to do yet."""

    def result(self, task: TrainTask) -> ClientUpdate:
        """Train now."""
        return trained_here(self._train, task)

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:  # noqa: ARG002
        """Measure when the result is asked for."""
        return lambda: measured(self._measure, parameters)

    def close(self) -> None:
        """Nothing to end."""


def make_workers(
    train: Train,
    workers: int,
    size: int,
    measure: Measure | None = None,
    kind: Kind = "processes",
) -> Workers:
    """Train and measure right here for one worker, in a pool for more."""
    require(workers >= 1, "workers", "at least 1", workers)
    keep_freed_memory()  # processes that are forked from this one inherit it
    if workers == 1:
        return InProcess(train, measure)
    if kind == "threads":
        return ThreadPool(train, workers, measure)
    return WorkerPool(train, workers, size, measure)
