"""A comparison that was interrupted goes on in its folder, to the same results."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from asyncfeded import Checkpoint, Comparison, StateError, Virtual, compare, federation, rules
from asyncfeded.callbacks import checkpoint
from asyncfeded.core.errors import InUseError, SettingError
from asyncfeded.runtime.control import Callback, Run
from asyncfeded.runtime.events import Event

RULES = {"a rule": rules.asyncfeded(), "another": rules.fedbuff(buffer_size=2)}


class PowerCut(BaseException):
    """Ends a run as nothing of it expects."""


class Begun:
    """Notes which runs are carried out, and cuts the power in one of them."""

    def __init__(self, cut: tuple[str, int] | None = None) -> None:
        self.runs: list[tuple[str, int]] = []
        self._cut = cut

    def __call__(self, rule: str, seed: int) -> list[Callback]:
        def note(_: Event, run: Run) -> None:
            if (rule, seed) not in self.runs:
                self.runs.append((rule, seed))
            if (rule, seed) == self._cut and run.updates == 30:
                raise PowerCut

        return [note]


def module() -> nn.Module:
    return nn.Linear(5, 2)


def compared(**given: Any) -> Comparison:
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(20, 5, generator=draw) for _ in range(3)]
    data = [(x, (x[:, 0] > 0).long()) for x in inputs]
    return compare(
        **{"make_model": module, "rules": RULES, "seeds": 2, "seconds": 2.0, **given}, datasets=data
    )


def told_by(comparison: Comparison) -> dict[tuple[str, int], Any]:
    """All that the results say but how long they took."""
    return {
        (rule, seed): {**result.summary(), "wall_seconds": 0, "curve": result.curve}
        for rule, runs in comparison.results.items()
        for seed, result in runs.items()
    }


@pytest.fixture(autouse=True)
def _saved_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WALL_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "LARGEST_SHARE", 1e9)


def test_finished_runs_are_kept_and_the_interrupted_one_goes_on(tmp_path: Path) -> None:
    whole, folder = compared(), tmp_path / "kept"
    with pytest.raises(PowerCut):
        compared(checkpoint=folder, callbacks=Begun(cut=("another", 0)))
    assert len(list(folder.glob("*.bin"))) == 1
    assert len(list(folder.glob("*/snapshot-*.bin"))) == 1, "the test means a run in the middle"
    begun = Begun()
    again = compared(checkpoint=folder, callbacks=begun, world=Virtual(workers=2))
    assert begun.runs == [("another", 0), ("a rule", 1), ("another", 1)]
    assert told_by(again) == told_by(whole)
    assert len(list(folder.iterdir())) == 4, "a file per run and nothing else"
    more = Begun()
    compared(checkpoint=folder, callbacks=more, seeds=3)
    assert more.runs == [("a rule", 2), ("another", 2)]


def test_a_run_that_was_not_saved_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "WALL_SECONDS", 60.0)
    with pytest.raises(PowerCut):
        compared(checkpoint=tmp_path, callbacks=Begun(cut=("a rule", 0)))
    assert not list(tmp_path.glob("*/snapshot-*"))
    assert told_by(compared(checkpoint=tmp_path)) == told_by(compared())


def test_other_settings_and_other_models_are_other_runs(tmp_path: Path) -> None:
    first = {"a rule": RULES["a rule"]}
    compared(checkpoint=tmp_path, rules=first, seeds=1)
    for other in (
        {"seconds": 1.0},
        {"make_model": lambda: nn.Linear(5, 3)},
        {"rules": {"a rule": RULES["another"]}},
    ):
        begun = Begun()
        compared(
            **{"checkpoint": tmp_path, "rules": first, "seeds": 1, "callbacks": begun, **other}
        )
        assert begun.runs == [("a rule", 0)]


def test_what_cannot_be_believed_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(checkpoint=tmp_path, seeds=1)
    path = next(iter(sorted(tmp_path.glob("*.bin"))))
    content = path.read_bytes()
    flipped = [bytearray(content) for _ in range(20)]
    for number, changed in enumerate(flipped):
        changed[number * len(content) // 20] ^= 1 << number % 8
    for damaged in (content[:-10], content[:50], b"", content + b" ", *map(bytes, flipped)):
        path.write_bytes(damaged)
        with pytest.raises(StateError, match=f"{path.name}.* is damaged.*; without the file"):
            compared(checkpoint=tmp_path, seeds=1)
    path.write_bytes(content)
    monkeypatch.setattr(federation, "__version__", "9.9")
    with pytest.raises(StateError, match=r"saved by asyncfeded .*, this is 9\.9: go on with the"):
        compared(checkpoint=tmp_path, seeds=1)


def test_what_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="checkpoint must be a folder"):
        compared(checkpoint=5)
    with pytest.raises(SettingError, match="resume is no argument of compare: write checkpoint="):
        compared(resume=tmp_path)
    with pytest.raises(SettingError, match="callbacks must be without a Checkpoint"):
        compared(checkpoint=tmp_path, callbacks=lambda *_: [Checkpoint(tmp_path / "own")])

    def compare_again(*_: Any) -> list[Callback]:
        compared(checkpoint=tmp_path)
        return []

    with pytest.raises(InUseError, match="is in use by another comparison"):
        compared(checkpoint=tmp_path, callbacks=compare_again)
