"""A run of the evaluation that was killed goes on where it was saved."""

from dataclasses import replace
from pathlib import Path

import pytest

from asyncfeded.experiment import RunSettings, load_data, run_settings
from asyncfeded.store import RunStore
from asyncfeded.store.disk import RealDisk
from asyncfeded_paper.record import Record, make_record
from asyncfeded_paper.work import Laboratory, _make
from cut_runs import Cut


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cut:
    monkeypatch.chdir(tmp_path)
    return Cut(tmp_path)


def settings_of(cut: Cut) -> RunSettings:
    options = dict(zip(cut.options[::2], cut.options[1::2], strict=True))
    named = {name.removeprefix("--").replace("-", "_"): value for name, value in options.items()}
    return run_settings({**named, "checkpoint_every": 0.5})


def but_for_the_time(record: Record) -> Record:
    return replace(record, summary={**record.summary, "wall_seconds": 0})


def test_a_record_is_the_same_after_an_interrupt(cut: Cut) -> None:
    settings = settings_of(cut)
    whole = make_record(settings, load_data(settings))
    saved = Laboratory(RunStore(cut.folder / "store"), workers=1)._saved(whole.key)
    (cut.folder / "cut").write_text("100")
    with pytest.raises(KeyboardInterrupt):
        _make(settings, saved)
    assert list(saved.glob("snapshot-*"))
    again = _make(settings, saved)
    assert but_for_the_time(again) == but_for_the_time(whole)
    assert not saved.exists()


def test_a_run_that_another_command_makes_is_made_beside_it(cut: Cut) -> None:
    settings = settings_of(cut)
    with RealDisk(cut.folder / "in-use"):
        beside = _make(settings, cut.folder / "in-use")
    alone = _make(settings, cut.folder / "free")
    assert but_for_the_time(beside) == but_for_the_time(alone)
