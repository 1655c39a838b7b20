"""A run of the evaluation that was killed goes on where it was saved."""

from dataclasses import replace
from pathlib import Path

import pytest

from asyncfeded.experiment import load_data, run_settings
from asyncfeded.store import RunStore
from asyncfeded_paper.record import Record, make_record
from asyncfeded_paper.work import Laboratory, _make
from cut_runs import Cut


def but_for_the_time(record: Record) -> Record:
    return replace(record, summary={**record.summary, "wall_seconds": 0})


def test_a_record_is_the_same_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cut = Cut(tmp_path)
    options = dict(zip(cut.options[::2], cut.options[1::2], strict=True))
    named = {name.removeprefix("--").replace("-", "_"): value for name, value in options.items()}
    settings = run_settings({**named, "checkpoint_every": 0.5})
    whole = make_record(settings, load_data(settings))
    saved = Laboratory(RunStore(tmp_path / "store"), workers=1)._saved(whole.key)
    (tmp_path / "cut").write_text("100")
    with pytest.raises(KeyboardInterrupt):
        _make(settings, saved)
    assert list(saved.glob("snapshot-*"))
    again = _make(settings, saved)
    assert but_for_the_time(again) == but_for_the_time(whole)
    assert not saved.exists()
