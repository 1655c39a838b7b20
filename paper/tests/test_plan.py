"""Which runs the evaluation consists of, and that they are fair and complete."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asyncfeded import SettingError
from asyncfeded.experiment import PAPER_RULES, run_settings
from asyncfeded_paper.authors import authors_cells
from asyncfeded_paper.datasets import digest_for
from asyncfeded_paper.plan import (
    AUTHORS_HANGS,
    STEERED,
    STEERING,
    Cell,
    Plan,
    cells_of_constant_epochs,
    cells_of_study,
    cells_over_time,
    figure_of,
    runs_of,
    seeds_of,
    settings_of,
)
from asyncfeded_paper.record import identity, key
from asyncfeded_paper.scope import SUSPENSIONS, TASKS
from asyncfeded_paper.sweeps import SWEEPS, target_accuracy

FULL = Plan(scale="full")
SYNTHETIC = Plan(tasks=("synthetic-1-1",))


def test_the_full_evaluation_is_the_paper_s() -> None:
    cells = cells_over_time(FULL)
    drawn = [cell for cell in cells if not cell.given]
    replayed = [cell for cell in cells if cell.given == AUTHORS_HANGS]
    steered = [cell for cell in cells if cell.row == STEERED]
    assert len(drawn) == 3 * 5 * 10
    assert len(replayed) == 3 * 5 * 9  # at P = 0 nobody hangs
    assert len(steered) == 3 * (10 + 9)
    assert len(cells) == len(drawn) + len(replayed) + len(steered)
    assert len(runs_of(FULL, cells)) == 3 * 6 * (10 * 5 + 9)
    assert {(c.task, c.rule, c.suspension) for c in cells} == set(authors_cells())
    assert {FULL.seconds_of(task) for task in TASKS} == {300.0}


def test_a_cell_is_in_the_row_of_its_rule_unless_something_else_was_changed() -> None:
    for task in TASKS:
        assert Cell(task, "asyncfeded", 0.5).row == "asyncfeded"
        assert Cell(task, "fedavg", 0.5, AUTHORS_HANGS).row == "fedavg"
        assert Cell(task, "asyncfeded", 0.5, STEERING[task]).row == STEERED
        assert Cell(task, "asyncfeded", 0.5, AUTHORS_HANGS + STEERING[task]).row == STEERED
        assert Cell(task, "asyncfeded", 0.5, (("kappa", 0.0),)).row is None


def test_the_authors_hangs_are_run_once_with_any_steering() -> None:
    plan = replace(SYNTHETIC, seeds=3)
    for given, runs in (((), 3), (AUTHORS_HANGS, 1), (AUTHORS_HANGS + STEERING[TASKS[0]], 1)):
        assert len(seeds_of(plan, Cell(TASKS[0], "asyncfeded", 0.5, given))) == runs


def test_a_quick_evaluation_keeps_all_rules_and_tasks_and_the_ends_of_p() -> None:
    cells = cells_over_time(Plan())
    for task in TASKS:
        for suspension in (0.0, 0.5, 0.9):
            rules = {c.rule for c in cells if (c.task, c.suspension) == (task, suspension)}
            assert rules == set(PAPER_RULES)


def test_figures_5_to_14_are_one_per_p() -> None:
    assert [figure_of(p) for p in SUSPENSIONS] == list(range(5, 15))
    assert figure_of(0.25) is None
    only = replace(FULL, figures=(7,), tasks=("femnist",))
    assert {cell.suspension for cell in cells_over_time(only)} == {0.2}
    quick = Plan(figures=(7,), tasks=("femnist",))
    assert {cell.suspension for cell in cells_over_time(quick)} == {0.2}


def test_figure_4_has_adaptive_k_and_four_constant_ones() -> None:
    cells = cells_of_constant_epochs(SYNTHETIC)
    assert [cell.epochs for cell in cells] == [None, 5, 10, 15, 20]
    assert cells_of_constant_epochs(replace(SYNTHETIC, figures=(2,))) == []


def test_the_study_is_of_one_task_when_it_must_be_quick() -> None:
    assert {cell.task for cell in cells_of_study(Plan())} == {"synthetic-1-1"}
    assert {cell.task for cell in cells_of_study(Plan(tasks=("femnist",)))} == {"femnist"}
    assert {cell.task for cell in cells_of_study(FULL)} == set(TASKS)


def test_within_a_cell_of_p_and_seed_only_the_rule_differs() -> None:
    known = [
        identity(settings_of(SYNTHETIC, Cell("synthetic-1-1", rule, 0.5), 3), data)
        for rule in PAPER_RULES
        for data in [digest_for(run_settings({"task": "synthetic-1-1"}))]
    ]
    for settings in known:
        assert settings.pop("rule") in PAPER_RULES
        hyperparameters = settings.pop("hyperparameters")
        assert hyperparameters["initial_epochs"] == 10
    assert all(settings == known[0] for settings in known)


def test_what_changes_no_result_changes_no_key() -> None:
    data = digest_for(run_settings({"task": "synthetic-1-1"}))
    plain = run_settings({"task": "synthetic-1-1"})
    same = run_settings({"task": "synthetic-1-1", "workers": 2, "out": "x", "lam": 5.0, "eps": 5.0})
    other = run_settings({"task": "synthetic-1-1", "lam": 4.0})
    assert key(identity(plain, data)) == key(identity(same, data))
    assert key(identity(plain, data)) != key(identity(other, data))


def test_a_setting_that_is_new_and_at_its_default_changes_no_key() -> None:
    data = digest_for(run_settings({"task": "synthetic-1-1"}))
    known = identity(run_settings({"task": "synthetic-1-1"}), data)
    before = {name: value for name, value in known.items() if name != "hangs"}
    before["hyperparameters"] = {
        name: value for name, value in known["hyperparameters"].items() if name != "rounding"
    }
    assert key(before) == key(known)
    delayed = identity(run_settings({"task": "synthetic-1-1", "hangs": "delay"}), data)
    assert key(delayed) != key(known)


def test_a_device_is_part_of_a_key_only_where_it_is_not_the_cpu() -> None:
    known = identity(run_settings({"task": "synthetic-1-1"}), "data")
    before = {name: value for name, value in known.items() if name != "device"}
    assert known["device"] == "cpu"
    assert key(before) == key(known)
    assert key(known | {"device": "cuda"}) != key(known)


def test_recorded_hangs_count_by_their_content(tmp_path: Path) -> None:
    data = digest_for(run_settings({"task": "synthetic-1-1"}))
    keys = []
    for name, hang in (("one.csv", 1), ("same.csv", 1), ("other.csv", 2)):
        path = tmp_path / name
        path.write_text(f"client,round,hang\nclient-0,0,{hang}\n")
        settings = run_settings({"task": "synthetic-1-1", "hangs_from": str(path)})
        keys.append(key(identity(settings, data)))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(("task", "seconds"), [("synthetic-1-1", 6.2), ("shakespeare", 11.3)])
def test_a_run_of_the_evaluation_has_the_authors_start_up(task: str, seconds: float) -> None:
    assert settings_of(Plan(), Cell(task, "asyncfeded", 0.5), 0).start_up == seconds
    assert run_settings({"task": task}).start_up == 0.0


@pytest.mark.parametrize(
    ("table", "grid", "one_at_a_time"), [(1, 5, 5), (2, 5, 5), (3, 25, 9), (4, 400, 15)]
)
def test_the_sweeps_are_the_paper_s(table: int, grid: int, one_at_a_time: int) -> None:
    sweep = SWEEPS[table]
    for task in TASKS:
        everything = sweep.points(task, whole_grid=True)
        assert len(everything) == grid
        assert sweep.selected(task) in everything
        assert len(sweep.points(task, whole_grid=False)) == one_at_a_time


def test_a_sweep_over_the_ratio_gives_the_rule_its_epsilon() -> None:
    point = {"lam_over_eps": 0.5, "lam": 5.0, "gamma_bar": 3.0, "kappa": 1.0}
    given = SWEEPS[4].hyperparameters(point)
    assert given == {"lam": 5.0, "gamma_bar": 3.0, "kappa": 1.0, "eps": 10.0}


def test_runs_are_timed_to_nine_tenths_of_the_authors_best() -> None:
    assert target_accuracy("synthetic-1-1") == pytest.approx(0.9 * 0.9933, abs=1e-3)
    assert target_accuracy("femnist-standin") == target_accuracy("femnist")
    assert target_accuracy("synthetic-2-2") == 0.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"figures": (15,)}, "figure must be from 1 to 14; given 15"),
        ({"tables": (0,)}, "table must be from 1 to 4; given 0"),
        ({"seeds": 0}, "seeds must be from 1 to 1000; given 0"),
        ({"tasks": ("mnist",)}, "task must be .* given 'mnist'"),
        ({"seconds": 0.0}, "seconds must be above 0; given 0.0"),
        ({"figures": (7,), "suspensions": (0.5,)}, "figure 7 shows P = 0.2, .* given 0.5"),
        ({"suspensions": (1.0,)}, "suspension must be .*; given 1.0"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said_in_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said) as error:
        Plan(**given)
    assert "\n" not in str(error.value)


def test_the_authors_figures_are_shares_and_seconds() -> None:
    cell = authors_cells()["synthetic-1-1", "asyncfeded", 0.1]
    assert 0.99 < cell.max_accuracy.mean < 1
    assert 10 < cell.t90_seconds.mean < 30
