"""Where training happens: in this process when it is due, or ahead of time in others.

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
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from multiprocessing.synchronize import Lock
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from asyncfeded.core.errors import SettingError, TrainingError, require
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector, read_only

Key = tuple[str, int]


def _key(task: TrainTask) -> Key:
    return task.client_id, task.round


class Workers(Protocol):
    """Trains tasks; every result is asked for once, in the order of virtual time."""

    def submit(self, task: TrainTask, due: float) -> None:
        """Train this, the earlier the sooner it is due."""

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task."""

    def close(self) -> None:
        """End all training."""


class InProcess:
    """Trains in this process, when the result is asked for."""

    def __init__(self, train: Train) -> None:
        self._train = train

    def submit(self, task: TrainTask, due: float) -> None:
        """Nothing to do yet."""

    def result(self, task: TrainTask) -> ClientUpdate:
        """Train now."""
        try:
            return _trained(self._train, task)
        except Exception as error:
            raise _training_error(_key(task), repr(error)) from error

    def close(self) -> None:
        """Nothing to end."""


class _Order(NamedTuple):
    """A task on its way to a worker; its parameters lie in the shared slot."""

    slot: int
    client_id: str
    version: int
    epochs: int
    round: int
    proximal_mu: float


class _Report(NamedTuple):
    """A worker's answer: an update, whose delta lies in the slot if it fits, or a failure."""

    order: _Order
    update: ClientUpdate | None
    delta_in_slot: bool
    failure: str | None


class WorkerPool:
    """Trains ahead of time on `workers` processes, the task that is due first before others.

    A shared queue holds at most one task per worker beyond those at work, so that a worker never
    waits for this process between two tasks. Vectors travel in shared memory: two slots per
    worker, and a delta takes the place of the parameters it was trained from.
    """

    def __init__(self, train: Train, workers: int, size: int) -> None:
        require(workers >= 1, "workers", "at least 1", workers)
        context = _fork_context()
        self._slots = [_shared_vector(size) for _ in range(2 * workers)]
        self._free = list(range(len(self._slots)))
        self._waiting: list[tuple[float, int, TrainTask]] = []
        self._order = count()
        self._done: dict[Key, ClientUpdate | TrainingError] = {}
        queue_end, self._queue = context.Pipe(duplex=False)
        queue_lock = context.Lock()
        self._processes: list[ForkProcess] = []
        self._reports: list[Connection] = []
        self._selector = DefaultSelector()
        for _ in range(workers):
            reports, report_end = context.Pipe(duplex=False)
            process = context.Process(
                target=_work,
                args=(train, self._slots, queue_end, self._queue, queue_lock, report_end),
                daemon=True,
            )
            process.start()
            # The worker alone holds this end now, so its death shows as an end of file.
            report_end.close()
            self._selector.register(reports, EVENT_READ, data=len(self._reports))
            self._processes.append(process)
            self._reports.append(reports)
        queue_end.close()

    def submit(self, task: TrainTask, due: float) -> None:
        """Queue a task by the time at which its result is due."""
        heapq.heappush(self._waiting, (due, next(self._order), task))
        self._hand_out()

    def result(self, task: TrainTask) -> ClientUpdate:
        """Wait for the update of a submitted task; a failure is raised when it is due."""
        self._collect(timeout=0)
        while _key(task) not in self._done:
            self._collect(timeout=None)
        outcome = self._done.pop(_key(task))
        if isinstance(outcome, TrainingError):
            raise outcome
        return outcome

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
        """Put the tasks that are due first into free slots."""
        while self._free and self._waiting:
            _, _, task = heapq.heappop(self._waiting)
            slot = self._free.pop()
            self._slots[slot][:] = task.parameters
            order = _Order(
                slot, task.client_id, task.version, task.epochs, task.round, task.proximal_mu
            )
            self._queue.send(order)

    def _collect(self, timeout: float | None) -> None:
        """Take in what the workers have reported; without a timeout, wait for a report."""
        for ready, _ in self._selector.select(timeout):
            try:
                report: _Report = self._reports[ready.data].recv()
            except EOFError:
                raise self._dead_worker(ready.data) from None
            self._take_in(report)
        self._hand_out()

    def _take_in(self, report: _Report) -> None:
        order, update = report.order, report.update
        key = order.client_id, order.round
        if update is None:
            self._done[key] = _training_error(key, str(report.failure))
        elif report.delta_in_slot:
            self._done[key] = replace(update, delta=self._slots[order.slot].copy())
        else:
            self._done[key] = update
        self._free.append(order.slot)

    def _dead_worker(self, index: int) -> TrainingError:
        process = self._processes[index]
        process.join()
        return TrainingError(
            f"worker process {index} ended by itself (exit code {process.exitcode}); "
            "with too little memory use fewer workers"
        )


def _work(
    train: Train,
    slots: list[Vector],
    queue: Connection,
    queue_of_parent: Connection,
    queue_lock: Lock,
    reports: Connection,
) -> None:
    """Run a worker: take an order, train, report; until the parent ends it or has ended."""
    # Without this copy of the parent's end, its death shows as an end of file.
    queue_of_parent.close()
    # The parent decides what an interrupt from the keyboard means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with threadpool_limits(limits=1), suppress(EOFError, BrokenPipeError):
        while True:
            with queue_lock:
                order: _Order = queue.recv()
            reports.send(_carry_out(train, order, slots[order.slot]))


def _carry_out(train: Train, order: _Order, slot: Vector) -> _Report:
    task = TrainTask(
        order.client_id,
        order.version,
        read_only(slot),
        order.epochs,
        order.round,
        order.proximal_mu,
    )
    try:
        update = _trained(train, task)
        delta = update.delta
        fits = isinstance(delta, np.ndarray) and delta.dtype == slot.dtype
        if fits and delta.shape == slot.shape:
            slot[:] = delta
            return _Report(order, replace(update, delta=slot[:0].copy()), True, None)
    except Exception as error:  # noqa: BLE001 - whatever the user's training raises is reported
        notes = "".join(traceback.format_exception(error))
        return _Report(order, None, False, f"{error!r}\n{notes}")
    return _Report(order, update, False, None)


def _trained(train: Train, task: TrainTask) -> ClientUpdate:
    update: object = train(task)
    if not isinstance(update, ClientUpdate):
        raise TypeError(f"training must return a ClientUpdate; given {type(update).__name__}")
    return update


def _training_error(key: Key, failure: str) -> TrainingError:
    client_id, round_number = key
    what, _, notes = failure.partition("\n")
    error = TrainingError(
        f"training of client {client_id!r} failed in round {round_number}: {what}"
    )
    if notes:
        error.add_note(notes)
    return error


def _shared_vector(size: int) -> Vector:
    return np.frombuffer(mmap.mmap(-1, 4 * size), dtype=np.float32)


def _fork_context() -> ForkContext:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise SettingError(
            "workers must be 1 on this platform, which cannot fork processes; given more"
        )
    return multiprocessing.get_context("fork")


def make_workers(train: Train, workers: int, size: int) -> Workers:
    """Train in this process for one worker, in a pool for more."""
    require(workers >= 1, "workers", "at least 1", workers)
    return InProcess(train) if workers == 1 else WorkerPool(train, workers, size)
