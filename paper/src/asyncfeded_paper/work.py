"""Runs as units of work: several at once, each kept when it is done, none made twice."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

import torch

from asyncfeded import InUseError, SettingError, TrainingError
from asyncfeded.experiment import RunSettings
from asyncfeded.store import RunStore
from asyncfeded_paper.datasets import data_for, digest_for
from asyncfeded_paper.record import Record, identity, key, make_record, read

WAIT_SECONDS = 0.5
VARIED = {"unit", "decay", "decay_per", "momentum", "learning_rate"}
"""Settings that tell runs of one rule apart, besides its hyperparameters."""

Kind = tuple[str, str, float]
"""Task, rule and P: what decides how long a run takes."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A run to be made, and who is told of its record."""

    settings: RunSettings
    tell: Callable[[Record], None] = lambda _: None

    @property
    def kind(self) -> Kind:
        """By what its time is estimated."""
        return self.settings.task, self.settings.rule, self.settings.suspension

    @property
    def name(self) -> str:
        """What it is, for who watches."""
        task, rule, suspension = self.kind
        settings = self.settings.model_dump(exclude_unset=True, include=VARIED)
        varied = {**self.settings.hyperparameters, **settings}
        given = "".join(f" {name}={value}" for name, value in varied.items())
        return f"{task} {rule}{given} P={suspension:g} seed {self.settings.seed}"


@dataclass(slots=True)
class Standing:
    """How far the work is."""

    left: list[Kind]
    workers: int
    done: int = 0
    running: dict[str, tuple[Unit, float]] = field(default_factory=dict)
    costs: dict[Kind, list[float]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many runs there are in all."""
        return self.done + len(self.running) + len(self.left)

    def seconds_left(self, now: float) -> float | None:
        """An estimate from the runs that there are, those most alike first."""
        if not self.costs:
            return None
        begun = (
            max(0.0, self._cost(unit.kind) - (now - since)) for unit, since in self.running.values()
        )
        return (sum(map(self._cost, self.left)) + sum(begun)) / self.workers

    def _cost(self, kind: Kind) -> float:
        task, rule, suspension = kind
        for alike in (
            [costs for other, costs in self.costs.items() if other == kind],
            [costs for other, costs in self.costs.items() if other[::2] == (task, suspension)],
            [costs for other, costs in self.costs.items() if other[:2] == (task, rule)],
            [costs for other, costs in self.costs.items() if other[0] == task],
        ):
            if alike:
                return fmean(cost for costs in alike for cost in costs)
        return fmean(cost for costs in self.costs.values() for cost in costs)


OnProgress = Callable[[Standing, Unit | None, Record | None], None]
"""Told of every run that is done, and now and then of none."""


@dataclass(slots=True)
class _Running:
    """A run that is being made, for all who asked for it."""

    future: Future[Record]
    units: list[Unit]


class Laboratory:
    """Makes runs in processes of their own, and keeps them in a store."""

    def __init__(self, store: RunStore, workers: int) -> None:
        if workers < 1:
            raise SettingError(f"workers must be at least 1; given {workers}")
        self._store = store
        self._workers = workers

    def find(self, settings: RunSettings) -> Record | None:
        """A run that was made already."""
        key = _key(settings)
        return read(self._store, key) if key in self._store else None

    def carry_out(self, units: Sequence[Unit], on_progress: OnProgress) -> None:
        """Make those that are not in the store, and tell whoever asked for them.

        An error ends the work; every run that is done by then is kept.
        """
        standing = Standing([unit.kind for unit in units], self._workers)
        waiting = iter(units)
        running: dict[str, _Running] = {}
        pool = _make_pool(self._workers)
        try:
            while self._fill(pool, waiting, running, standing, on_progress) or running:
                wait([run.future for run in running.values()], WAIT_SECONDS, FIRST_COMPLETED)
                done = [key for key, run in running.items() if run.future.done()]
                ended = [running.pop(key) for key in done]
                self._keep(ended)
                for key, run in zip(done, ended, strict=True):
                    del standing.running[key]
                    _finish(run, standing, on_progress)
                on_progress(standing, None, None)
        finally:
            _end(pool)

    def _fill(
        self,
        pool: ProcessPoolExecutor,
        waiting: Iterator[Unit],
        running: dict[str, _Running],
        standing: Standing,
        on_progress: OnProgress,
    ) -> bool:
        """Begin runs until every worker has one; False if there are no more."""
        while len(running) < self._workers:
            unit = next(waiting, None)
            if unit is None:
                return False
            key = _key(unit.settings)
            if key in running:
                running[key].units.append(unit)
            elif key in self._store:
                standing.left.remove(unit.kind)
                _tell(unit, read(self._store, key), standing, on_progress)
            else:
                standing.left.remove(unit.kind)
                standing.running[key] = (unit, time.monotonic())
                running[key] = _Running(pool.submit(_make, unit.settings, self._saved(key)), [unit])
        return True

    def _saved(self, key: str) -> Path:
        """Where a run under way is saved, for the next process to go on with; then it is empty."""
        return self._store.folder / f"{key}.running"

    def _keep(self, ended: Sequence[_Running]) -> None:
        """Keep the runs that did not fail, before anything is said of those that did."""
        for run in ended:
            if run.future.exception() is None:
                self._store.put(asdict(run.future.result()))


def _key(settings: RunSettings) -> str:
    return key(identity(settings, digest_for(settings)))


def _finish(run: _Running, standing: Standing, on_progress: OnProgress) -> None:
    """Tell all who asked for a run of its record, or raise what went wrong."""
    first, *others = run.units
    record = _outcome(run.future, first)
    _tell(first, record, standing, on_progress)
    for unit in others:
        standing.left.remove(unit.kind)
        _tell(unit, record, standing, on_progress)


def _tell(unit: Unit, record: Record, standing: Standing, on_progress: OnProgress) -> None:
    standing.done += 1
    standing.costs.setdefault(unit.kind, []).append(record.summary["wall_seconds"])
    unit.tell(record)
    on_progress(standing, unit, record)


def _outcome(future: Future[Record], unit: Unit) -> Record:
    try:
        return future.result()
    except BrokenProcessPool:
        raise TrainingError(
            f"the process that made {unit.name} ended by itself; with too little memory "
            "use fewer workers. What was done by then is kept: run the same command again"
        ) from None


def _make(settings: RunSettings, saved: Path) -> Record:
    data = data_for(settings)
    try:
        return make_record(settings, data, saved)
    except InUseError:  # another command makes the same run; the first to be done is kept
        return make_record(settings, data)


def _make_pool(workers: int) -> ProcessPoolExecutor:
    # Not forked: this process may have threads of torch's, which a fork would leave behind.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, initializer=_prepare_worker)


def _end(pool: ProcessPoolExecutor) -> None:
    """End all processes, whatever they are doing: what is not done is made another time."""
    processes = list((pool._processes or {}).values())
    for process in processes:
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker() -> None:
    # The parent decides what an interrupt from the keyboard means, and its death ends this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
