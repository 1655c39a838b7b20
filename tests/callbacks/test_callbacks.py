"""Callbacks that stop a run, keep its best model and measure its clients."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from asyncfeded import (
    ClientCurves,
    EventLog,
    KeepBest,
    Run,
    StopAfter,
    StopAt,
    Virtual,
    federate,
)
from asyncfeded.core.errors import SettingError
from asyncfeded.learning.flat import FlatModule
from asyncfeded.result import Result
from asyncfeded.runtime.events import Event, Finished, Received


def clients() -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(40, 5, generator=draw) for _ in range(3)]
    return [(x, (x[:, 0] > 0).long()) for x in inputs]


def module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(5, 2)


def federated(*callbacks: Any, of: nn.Module | None = None, **given: Any) -> Result:
    given = {"seconds": 4.0, "evaluate_every": 0.5, **given}
    return federate(module() if of is None else of, clients(), callbacks=callbacks, **given)


class Heard:
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event, run: Run) -> None:
        self.events.append(event)


def test_a_run_stops_after_as_many_accepted_updates_as_were_asked_for() -> None:
    heard = Heard()
    result = federated(StopAfter(updates=5), heard)
    assert (result.updates, result.versions, result.finished) == (5, 6, True)
    assert result.stopped_by == "StopAfter(updates=5)"
    assert result.summary()["stopped_by"] == "StopAfter(updates=5)"
    last = heard.events[-1]
    assert isinstance(last, Finished)
    assert last.seconds < 4.0


def test_a_stopped_run_measures_the_model_that_it_ends_with() -> None:
    result = federated(StopAfter(updates=5))
    assert result.curve[-1].version == result.versions == 6
    assert [point.seconds for point in result.curve] == sorted(p.seconds for p in result.curve)


def test_a_stopped_run_is_the_beginning_of_the_whole_one(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    federated(EventLog(whole))
    result = federated(EventLog(part), StopAfter(updates=5), world=Virtual(workers=2))
    *lines, _ = part.read_text().splitlines()
    assert lines == whole.read_text().splitlines()[: len(lines)]
    assert result.log_sha256 != ""


def test_callbacks_that_only_watch_change_no_bit_of_the_log(tmp_path: Path) -> None:
    watched = federated(Heard(), KeepBest(tmp_path / "best"), ClientCurves(), StopAt("loss", 0.0))
    assert watched.log_sha256 == federated().log_sha256
    assert watched.stopped_by is None


def test_measuring_the_clients_changes_no_evaluation() -> None:
    measured = federated(ClientCurves(every=0.5))
    assert measured.metric("loss") == federated().metric("loss")


def test_a_run_stops_at_the_first_evaluation_that_reaches_the_value() -> None:
    whole = federated().metric("accuracy")
    value = whole[2]
    reached = next(place for place, found in enumerate(whole) if found >= value)
    curve = federated(StopAt("accuracy", value)).metric("accuracy")
    assert curve[: reached + 1] == whole[: reached + 1]
    assert len(curve) <= reached + 2 < len(whole)  # the last model is measured too


def test_loss_is_to_be_low_unless_another_goal_is_given() -> None:
    first = federated().metric("loss")[0]
    assert federated(StopAt("loss", first)).stopped_by == f"StopAt('loss', {first:g})"
    assert federated(StopAt("loss", first / 1000)).stopped_by is None
    assert federated(StopAt("loss", first, goal="max")).stopped_by is not None


def test_the_best_model_is_the_version_that_was_evaluated(tmp_path: Path) -> None:
    seen: dict[int, np.ndarray[Any, Any]] = {}

    def note(event: Event, run: Run) -> None:
        if isinstance(event, Received):  # evaluations are reported later, from newer versions
            seen[event.receipt.version] = run.parameters.copy()

    path = tmp_path / "best.safetensors"
    best = KeepBest(path, "loss")
    result = federated(best, note)
    assert best.best == min(result.metric("loss"))
    assert best.version is not None
    loaded = module()
    loaded.load_state_dict(load_file(path))
    np.testing.assert_array_equal(FlatModule(loaded).collect(), seen[best.version])


def test_of_equally_good_models_the_first_is_kept(tmp_path: Path) -> None:
    best = KeepBest(tmp_path / "best", "one")
    federated(best, metrics={"one": lambda _outputs, _targets: 1.0})
    assert (best.best, best.version) == (1.0, 1)


def test_curves_of_clients_have_the_percentiles_of_their_own_test_examples(
    tmp_path: Path,
) -> None:
    curves = ClientCurves(every=1.0, percentiles=(0, 50, 100))
    result = federated(curves)
    assert [point.seconds for point in curves.curve] == [0.0, 1.0, 2.0, 3.0, 4.0]
    own = sorted(c.accuracy for c in result.clients.values() if c.accuracy is not None)
    assert curves.curve[-1].values == pytest.approx(own)  # three clients, the last model
    curves.to_csv(tmp_path / "curves.csv")
    heading, *rows = (tmp_path / "curves.csv").read_text().splitlines()
    assert heading == "seconds,version,p0,p50,p100"
    assert len(rows) == 5


def test_curves_of_clients_need_test_examples_of_each_client() -> None:
    with pytest.raises(SettingError, match="ClientCurves needs test examples of each client"):
        federated(ClientCurves(), test=clients()[0])


def test_a_metric_that_is_not_measured_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"metric must be one that is measured, .*; given 'f1'"):
        federated(StopAt("f1", 0.8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StopAfter(0), "updates must be at least 1; given 0"),
        (lambda: StopAt("loss", 1.0, goal="low"), "goal must be 'max', 'min' or none"),  # type: ignore[arg-type]
        (lambda: ClientCurves(every=0), "every must be above 0; given 0"),
        (lambda: ClientCurves(percentiles=(101,)), "percentiles must be from 0 to 100"),
    ],
)
def test_a_wrong_setting_of_a_callback_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()
