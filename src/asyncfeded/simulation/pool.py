"""Training ahead of time in other processes.

The pool is made of pipes and shared memory rather than `concurrent.futures`, whose executor takes
about as long to hand over a task as a small model takes for a step, and cannot prefer the task
that is due first.
"""

import heapq
import mmap
import multiprocessing
import signal
import traceback
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from multiprocessing.synchronize import Lock
from pickle import UnpicklingError
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from asyncfeded.core.errors import AsyncFedEDError, SettingError, TrainingError, require
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector, read_only
from asyncfeded.runtime.evaluation import Evaluation, Measure
from asyncfeded.runtime.jobs import (
    Key,
    Order,
    key_of,
    measured,
    order_of,
    ordered_task,
    trained,
    training_error,
)
from asyncfeded.runtime.look_ahead import ProcessPool


class _Report(NamedTuple):
    """A worker's answer: an update, whose delta lies in the slot if it fits, or what failed."""

    slot: int
    key: Key
    outcome: ClientUpdate | Evaluation | AsyncFedEDError
    delta_in_slot: bool = False


class WorkerPool(ProcessPool):
    """Trains ahead of time on `workers` processes, the task that is due first before others.

    A shared queue holds at most one task per worker beyond those at work, so that a worker never
    waits for this process between two tasks. Vectors travel in shared memory: two slots per
    worker, and a delta takes the place of the parameters it was trained from.
    """

    def __init__(
        self, train: Train, workers: int, size: int, measure: Measure | None = None
    ) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        super().__init__()
        context = _fork_context()
        self._slots = [_shared_vector(size) for _ in range(2 * workers)]
        self._free = list(range(len(self._slots)))
        queue_end, self._queue = context.Pipe(duplex=False)
        queue_lock = context.Lock()
        self._processes: list[ForkProcess] = []
        self._reports: list[Connection] = []
        self._selector = DefaultSelector()
        for _ in range(workers):
            reports, report_end = context.Pipe(duplex=False)
            process = context.Process(
                target=_work,
                args=(train, measure, self._slots, queue_end, self._queue, queue_lock, report_end),
                daemon=True,
            )
            process.start()
            # The worker alone holds this end now, so its death shows as an end of file.
            report_end.close()
            self._selector.register(reports, EVENT_READ, data=len(self._reports))
            self._processes.append(process)
            self._reports.append(reports)
        queue_end.close()

    def close(self) -> None:
        """Stop the workers, whatever they are doing."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        self._selector.close()
        for connection in (*self._reports, self._queue):
            connection.close()

    def _hand_out(self) -> None:
        """Put what is due first into free slots."""
        while self._free and self._waiting:
            _, number, job = heapq.heappop(self._waiting)
            slot = self._free.pop()
            what: Order | int
            if isinstance(job, TrainTask):
                parameters, what = job.parameters, order_of(job)
            else:
                parameters, what = job, number
            self._slots[slot][:] = parameters
            try:
                self._queue.send((slot, what))
            except OSError:  # no worker is left to read it
                raise self._dead_worker(0) from None

    def _collect(self, wait: bool) -> None:
        """Take in what the workers have reported, or wait for a report."""
        for ready, _ in self._selector.select(None if wait else 0):
            try:
                report: _Report = self._reports[ready.data].recv()
            except (EOFError, OSError, UnpicklingError):  # a worker may end within a message
                raise self._dead_worker(ready.data) from None
            self._take_in(report)
        self._hand_out()

    def _take_in(self, report: _Report) -> None:
        outcome = report.outcome
        if report.delta_in_slot and isinstance(outcome, ClientUpdate):
            outcome = replace(outcome, delta=self._slots[report.slot].copy())
        self._done[report.key] = outcome
        self._free.append(report.slot)

    def _dead_worker(self, index: int) -> TrainingError:
        process = self._processes[index]
        process.join()
        return TrainingError(
            f"worker process {index} ended by itself (exit code {process.exitcode}); "
            "with too little memory use fewer workers"
        )


def _work(
    train: Train,
    measure: Measure | None,
    slots: list[Vector],
    queue: Connection,
    queue_of_parent: Connection,
    queue_lock: Lock,
    reports: Connection,
) -> None:
    """Run a worker: take a job, do it, report; until the parent ends it or has ended.

    A job is the number of a slot, in which its parameters lie, and an order or, for an evaluation,
    its number.
    """
    # Without this copy of the parent's end, its death shows as an end of file.
    queue_of_parent.close()
    # The parent decides what an interrupt from the keyboard means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with threadpool_limits(limits=1), suppress(EOFError, BrokenPipeError):
        while True:
            with queue_lock:
                number, what = queue.recv()
            if isinstance(what, int):
                reports.send(_evaluate(measure, number, what, slots[number]))
            else:
                reports.send(_train(train, number, what, slots[number]))


def _train(train: Train, number: int, order: Order, slot: Vector) -> _Report:
    task = ordered_task(order, read_only(slot))
    key = key_of(task)
    try:
        update = trained(train, task)
        delta = update.delta
        fits = isinstance(delta, np.ndarray) and delta.dtype == slot.dtype
        if fits and delta.shape == slot.shape:
            slot[:] = delta
            return _Report(number, key, replace(update, delta=slot[:0].copy()), True)
    except Exception as error:  # noqa: BLE001 - whatever the user's training raises is reported
        notes = "".join(traceback.format_exception(error))
        return _Report(number, key, training_error(key, f"{error!r}\n{notes}"))
    return _Report(number, key, update)


def _evaluate(measure: Measure | None, number: int, evaluation: int, slot: Vector) -> _Report:
    outcome: Evaluation | AsyncFedEDError
    try:
        outcome = measured(measure, read_only(slot))
    except AsyncFedEDError as error:
        outcome = error
    return _Report(number, ("", evaluation), outcome)


def _shared_vector(size: int) -> Vector:
    return np.frombuffer(mmap.mmap(-1, 4 * size), dtype=np.float32)


def _fork_context() -> ForkContext:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise SettingError(
            "workers must be 1 on this platform, which cannot fork processes; given more"
        )
    return multiprocessing.get_context("fork")
