from pathlib import Path

import numpy as np
import pytest

from asyncfeded.report.plots import metrics_over_time, rules_over_time, smoothed


def test_smoothing_takes_the_mean_of_neighbours() -> None:
    values = np.array([0.0, 3.0, 6.0, 0.0, 9.0])
    # Of 3: (0+3)/2, (0+3+6)/3, (3+6+0)/3, (6+0+9)/3, (0+9)/2.
    assert smoothed(values, 3).tolist() == [1.5, 3.0, 3.0, 5.0, 4.5]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_plots_are_written_in_the_format_of_their_name(tmp_path: Path, suffix: str) -> None:
    seconds, runs = [0.0, 1.0, 2.0], np.array([[0.1, 0.5, 0.9], [0.2, 0.6, 0.8]])
    rules_over_time(tmp_path / f"rules{suffix}", seconds, {"a": runs, "b": runs[:1]}, "title")
    metrics_over_time(tmp_path / f"run{suffix}", seconds, {"accuracy": [0.1, 0.5, 0.9]}, "title")
    for name in ("rules", "run"):
        assert (tmp_path / f"{name}{suffix}").stat().st_size > 5_000


def test_a_run_without_evaluations_can_be_drawn(tmp_path: Path) -> None:
    metrics_over_time(tmp_path / "empty.png", [], {"loss": []}, "nothing")
    assert (tmp_path / "empty.png").exists()
