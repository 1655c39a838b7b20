"""Runs that end together with a failed one are kept."""

from concurrent.futures import Future
from pathlib import Path

import pytest

from asyncfeded import TrainingError
from asyncfeded.experiment import RunSettings, run_settings
from asyncfeded.store import RunStore
from asyncfeded_paper import work
from asyncfeded_paper.record import Record
from asyncfeded_paper.work import Laboratory, Standing, Unit


class PoolThatIsDoneAtOnce:
    """Runs end as soon as they are begun; those with seed 0 fail."""

    _processes = None

    def submit(self, make: object, settings: RunSettings, saved: Path) -> Future[Record]:
        future: Future[Record] = Future()
        if settings.seed == 0:
            future.set_exception(TrainingError("client-1 failed"))
        else:
            summary = {"wall_seconds": 1.0}
            future.set_result(Record(work._key(settings), {}, [0.0], [0.5], [1.0], summary, {}))
        return future

    def shutdown(self, wait: bool, cancel_futures: bool) -> None:
        """Nothing is left to be done."""


def nobody(standing: Standing, done: Unit | None, record: Record | None) -> None:
    """Watch no progress."""


def reader_gone(standing: Standing, done: Unit | None, record: Record | None) -> None:
    if done is not None:
        raise BrokenPipeError


def units(*seeds: int) -> list[Unit]:
    return [Unit(run_settings({"seconds": 1.0, "start_up": 0.0, "seed": seed})) for seed in seeds]


def test_a_run_that_ends_together_with_a_failed_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_make_pool", lambda workers: PoolThatIsDoneAtOnce())
    laboratory = Laboratory(RunStore(tmp_path), workers=2)
    failed, done = units(0, 1)
    with pytest.raises(TrainingError, match="client-1 failed"):
        laboratory.carry_out([failed, done], nobody)
    assert laboratory.find(failed.settings) is None
    assert laboratory.find(done.settings) is not None


def test_runs_that_end_together_are_kept_before_anybody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_make_pool", lambda workers: PoolThatIsDoneAtOnce())
    laboratory = Laboratory(RunStore(tmp_path), workers=2)
    both = units(1, 2)
    with pytest.raises(BrokenPipeError):
        laboratory.carry_out(both, reader_gone)
    assert all(laboratory.find(unit.settings) for unit in both)
