"""A search for hyperparameters: what it tries, and that it goes on where it ended."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.search_space import Choices, Range, Space, grid_of, read_space
from asyncfeded.experiment.settings import run_settings
from asyncfeded.experiment.sweep import Point, Sampler, Sweep

SPACE: Space = {"lam": Range(0.1, 10.0, log=True), "kappa": Choices((0.0, 0.5, 1.0))}
GRID: Space = {"lam": Choices((1.0, 2.0)), "kappa": Choices((0.0, 1.0))}


def sweep(folder: Path, space: Space = SPACE, sampler: Sampler = "tpe", **made_with: Any) -> Sweep:
    return Sweep(folder, space, sampler, "max", 0, {"task": "a", **made_with})


def near_three(_: int, point: Point) -> float:
    return float(-abs(point["lam"] - 3) - point["kappa"])


def interrupted_at(number: int) -> Callable[[int, Point], float]:
    def measure(trial: int, point: Point) -> float:
        if trial == number:
            raise KeyboardInterrupt
        return near_three(trial, point)

    return measure


def test_ranges_and_lists_are_read_as_the_rule_takes_them() -> None:
    space = read_space("asyncfeded", ["lam=0.1:10:log", "gamma-bar = 1:3", "kappa=0,0.5"])
    assert space == {
        "lam": Range(0.1, 10.0, log=True),
        "gamma_bar": Range(1.0, 3.0, log=False),
        "kappa": Choices((0.0, 0.5)),
    }
    whole = read_space("fedbuff", ["buffer_size=1:20"])["buffer_size"]
    assert isinstance(whole, Range)
    assert isinstance(whole.low, int)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "search must be given at least once, as NAME=LOW:HIGH, "),
        (["lam"], "search must be NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=VALUE,VALUE,…; given "),
        (["lam=1:2:3"], "search must be NAME=LOW:HIGH, "),
        (["lam=2:1"], "search must have LOW < HIGH; given 'lam=2:1'"),
        (["kappa=0:1:log"], "search must have 0 < LOW < HIGH; given "),
        (["lam=-1:2"], "lam must be above 0; given -1"),
        (["lam=1,x"], "lam must be a valid number"),
        (["lam=1,1"], "search must list every value once; given 'lam=1,1'"),
        (["lam=1,2", "lam=1:2"], "search must name every hyperparameter once; given 'lam' twice"),
        (["alpha=1,2"], "search must name a hyperparameter of asyncfeded: lam, "),
        (["rounding=a:b"], "rounding must be "),
    ],
)
def test_what_cannot_be_searched_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_space("asyncfeded", texts)
    assert str(caught.value).startswith(message)


def test_a_grid_needs_lists() -> None:
    lists: Space = {"a": Choices((1, 2)), "b": Choices((3,))}
    assert grid_of(lists) == [
        {"a": 1, "b": 3},
        {"a": 2, "b": 3},
    ]
    with pytest.raises(SettingError, match=r"such as lam=0.1,10; given a range for 'lam'"):
        grid_of(SPACE)


def test_a_grid_is_tried_once_and_whole_also_after_an_interrupt(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, GRID, "grid").run(9, interrupted_at(3))
    assert len(sweep(tmp_path, GRID, "grid").tried()) == 2
    whole = sweep(tmp_path, GRID, "grid")
    whole.run(9, near_three)
    assert [tried.point for tried in whole.tried()] == grid_of(GRID)
    assert whole.ranking()[0].point == {"lam": 2.0, "kappa": 0.0}


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_that_goes_on_tries_what_one_without_an_end_would(
    tmp_path: Path, sampler: Sampler
) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = sweep(tmp_path / "whole", sampler=sampler)
    whole.run(14, near_three)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "parts", sampler=sampler).run(14, interrupted_at(13))
    parts = sweep(tmp_path / "parts", sampler=sampler)
    parts.run(14, near_three)
    assert parts.tried() == whole.tried()
    assert len({tried.point["lam"] for tried in whole.tried()}) == 14
    parts.run(14, interrupted_at(15))  # there is nothing left to do


def test_a_value_that_is_no_number_is_the_worst(tmp_path: Path) -> None:
    search = sweep(tmp_path)
    search.run(2, lambda number, _: float("nan") if number == 1 else -1e9)
    assert [tried.number for tried in search.ranking()] == [2, 1]


def test_the_folder_of_another_sweep_is_refused(tmp_path: Path) -> None:
    sweep(tmp_path, seconds=1)
    sweep(tmp_path, seconds=1)
    with pytest.raises(SettingError, match="holds a sweep with another seconds: choose another"):
        sweep(tmp_path, seconds=2)


def test_the_best_settings_are_a_file_for_run(tmp_path: Path) -> None:
    search = sweep(tmp_path)
    search.run(5, near_three)
    search.write("max accuracy", {"task": "synthetic-1-1", "widths": [8, 4], "seconds": 2.0})
    given = tomllib.loads((tmp_path / "best.toml").read_text())
    settings = run_settings(given)
    assert (settings.widths, settings.seconds) == ((8, 4), 2.0)
    assert settings.hyperparameters == search.ranking()[0].point
    lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert lines[0] == "trial,max accuracy,lam,kappa"
    assert len(lines) == 6
