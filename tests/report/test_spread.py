"""One standard deviation, in tables and in plots."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from asyncfeded.experiment.run import resolve
from asyncfeded.experiment.settings import run_settings
from asyncfeded.report import plots
from asyncfeded.report.spread import Spread, deviation, spread
from asyncfeded.result import Result
from asyncfeded.runtime.world import Clock


def test_the_deviation_is_that_of_a_sample() -> None:
    # Mean 2, squares 1 + 0 + 1 over n − 1 = 2.
    assert spread([1.0, 2.0, 3.0]) == Spread(2.0, 1.0)
    assert spread([5.0]) == Spread(5.0, 0.0)
    assert deviation(np.array([[1.0, 4.0], [3.0, 4.0]])) == pytest.approx([2**0.5, 0.0])


def test_what_is_not_known_has_no_deviation() -> None:
    found = spread([1.0, None])
    assert np.isnan(found.mean)
    assert found.sd == 0.0


def test_a_band_is_as_wide_as_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bands = []

    def note(self: Axes, x: object, low: object, high: object, **options: object) -> None:
        bands.append((low, high))

    monkeypatch.setattr(Axes, "fill_between", note)
    runs = np.array([[0.25], [0.75]])
    plots.rules_over_time(tmp_path / "a.png", [0.0], {"a": runs}, "")
    ((low, high),) = bands
    expected = spread([0.25, 0.75])
    assert low == pytest.approx(expected.mean - expected.sd)
    assert high == pytest.approx(expected.mean + expected.sd)


@pytest.mark.parametrize(
    ("clock", "label"), [("virtual", "virtual time (s)"), ("real", "real time (s)")]
)
def test_the_axis_says_which_time_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, label: str
) -> None:
    labels = []
    monkeypatch.setattr(Axes, "set_xlabel", lambda self, text: labels.append(text))
    Result({}, clock).plot(tmp_path / "a.png")
    assert labels == [label]


def test_a_title_says_p_only_where_devices_are_imposed() -> None:
    imposed = run_settings({"suspension": 0.1})
    assert resolve(imposed).title("asyncfeded") == "synthetic-1-1, asyncfeded, P = 0.1"
    real = run_settings({"on": "ray", "devices": "real"})
    assert resolve(real).title("asyncfeded") == "synthetic-1-1, asyncfeded"
