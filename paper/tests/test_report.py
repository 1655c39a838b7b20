"""The report and its files, made from a small evaluation."""

import csv
import shutil
from pathlib import Path

import optuna
import pytest

from asyncfeded.experiment import PAPER_RULES
from asyncfeded.report import Spread
from asyncfeded_paper import griewank
from asyncfeded_paper.results import authors_contests, contests
from command_line import asyncfeded_here as asyncfeded
from small_evaluations import PART_OF_IT, SMALL_EVALUATION


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_is_there_as_png_svg_and_csv(small_evaluation: Path) -> None:
    numbered = ("figure-1", "figure-2", "figure-3", "figure-4", "figure-4-steering", "figure-5")
    for name in ("agreement", "figure-2-authors", *numbered):
        for suffix in (".png", ".svg", ".csv"):
            assert (small_evaluation / "figures" / f"{name}{suffix}").stat().st_size > 300
    drawn = rows_of(small_evaluation / "figures" / "figure-2.csv")
    assert {row["line"] for row in drawn} == set(PAPER_RULES)


def test_every_run_is_in_the_results_once(small_evaluation: Path) -> None:
    runs = rows_of(small_evaluation / "results.csv")
    assert len({row["run"] for row in runs}) == len(runs)
    # 3 values of P (0.1 for Figures 2 and 4) × 6 rows × 2 seeds, of which 2 values of P again with
    # the authors' hangs; 4 constant K × 2 seeds, and 5 values of μ, of which one is there already.
    assert len(runs) == 36 + 12 + 8 + 4
    assert len(list((small_evaluation / "store").glob("*.json"))) == len(runs)


def test_ours_stand_beside_the_authors(small_evaluation: Path) -> None:
    cells = rows_of(small_evaluation / "tables" / "cells.csv")
    ours = {(row["rule"], row["suspension"]): row for row in cells}
    row = ours["asyncfeded", "0.5"]
    assert row["runs"] == "2"
    assert float(row["authors_max_accuracy_mean"]) > 0.9
    report = (small_evaluation / "report.html").read_text()
    for part in ("Who is first", "Robustness", "Figure 1", "Table 1", "asyncfeded paper --task"):
        assert part in report


def test_the_report_in_markdown_links_to_its_pictures(small_evaluation: Path) -> None:
    lines = (small_evaluation / "RESULTS.md").read_text().splitlines()
    pictures = [line.partition("](")[2].rstrip(")") for line in lines if line.startswith("![")]
    assert "figures/agreement.png" in pictures
    assert all((small_evaluation / picture).exists() for picture in pictures)
    assert any(line.startswith("| asyncfeded, squared and carried |") for line in lines)


def test_a_sweep_is_an_optuna_study_ranked_both_ways(small_evaluation: Path) -> None:
    storage = f"sqlite:///{small_evaluation / 'sweeps.db'}"
    (summary,) = optuna.get_all_study_summaries(storage)
    study = optuna.load_study(study_name=summary.study_name, storage=storage)
    assert sorted(trial.params["mu"] for trial in study.trials) == [0.001, 0.01, 0.1, 0.5, 1.0]
    ranked = rows_of(small_evaluation / "tables" / "table-1.csv")
    accuracies = [float(row["max_accuracy"]) for row in ranked]
    assert accuracies == sorted(accuracies, reverse=True)
    ranks = [int(row["rank_by_accuracy"]) for row in ranked]
    assert ranks == [1 + sum(other > own for other in accuracies) for own in accuracies]
    assert {row["seconds_to_target"] for row in ranked} == {"inf"}
    assert {row["rank_by_time"] for row in ranked} == {""}  # nobody gets there in 2 s
    assert [row["mu"] for row in ranked if row["papers_choice"] == "True"] == ["0.1"]


def test_the_same_command_again_makes_only_what_is_missing_and_gives_the_same(
    small_evaluation: Path, tmp_path: Path
) -> None:
    store, results = tmp_path / "store", tmp_path / "results.csv"
    shutil.copytree(small_evaluation / "store", store)

    def times() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in store.iterdir()}

    stored = times()
    done = asyncfeded(*PART_OF_IT, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert times() == stored
    before = results.read_bytes()
    swept = [row for row in rows_of(results) if "mu=1.0" in row["hyperparameters"]]
    results.unlink()
    removed = f"{swept[0]['run']}.json"
    (store / removed).unlink()
    done = asyncfeded(*PART_OF_IT, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert {name for name, time in times().items() if time != stored[name]} == {removed}
    assert set(times()) == set(stored)
    assert results.read_bytes() == before
    assert len(rows_of(tmp_path / "tables" / "table-1.csv")) == 5


def test_who_is_first_is_told_with_one_deviation_of_grace() -> None:
    def cell(accuracy: float, sd: float, seconds: float) -> tuple[Spread, Spread]:
        return Spread(accuracy, sd), Spread(seconds, 0.0)

    others = {("t", rule, 0.0): cell(0.5, 0.01, 90.0) for rule in PAPER_RULES}
    close = {**others, ("t", "asyncfeded", 0.0): cell(0.68, 0.03, 10.0)}
    close["t", "fedavg", 0.0] = cell(0.70, 0.01, 80.0)
    (contest,) = contests(close)
    assert (contest.most_accurate, contest.fastest) == (("fedavg",), ("asyncfeded",))
    assert (contest.is_first, contest.is_close, contest.is_fastest) == (False, True, True)
    far = {**close, ("t", "asyncfeded", 0.0): cell(0.66, 0.03, 10.0)}
    assert not contests(far)[0].is_close
    shared = {**others, ("t", "fedprox", 0.0): cell(0.4, 0.0, 90.0)}
    (tie,) = contests(shared)
    assert tie.most_accurate == PAPER_RULES[:4]
    assert not tie.is_first
    assert tie.is_close
    assert not tie.is_fastest
    missing = {key: value for key, value in far.items() if key[1] != "fedprox"}
    assert contests(missing) == []


@pytest.mark.parametrize(
    ("task", "first"), [("synthetic-1-1", 10), ("shakespeare", 10), ("femnist", 7)]
)
def test_the_authors_count_of_first_places(task: str, first: int) -> None:
    of_task = [contest for contest in authors_contests() if contest.task == task]
    assert len(of_task) == 10
    assert sum(contest.is_first for contest in of_task) == first


def test_the_late_update_counts_by_distance_and_not_by_lag() -> None:
    by_lag, by_distance = griewank.examples()
    assert [arrival.lag for arrival in by_lag.arrivals] == [4, 5, 6, 7]
    assert by_lag.arrivals[-1].weight == pytest.approx(1 / 11)
    for arrival in by_distance.arrivals:
        assert arrival.weight == pytest.approx(1 / (1 + arrival.distance_staleness))
    late = by_distance.arrivals[-1]
    assert late.weight > 0.4
    assert late.loss_after < late.loss_before
    assert by_distance.arrivals[-1].loss_after < by_lag.arrivals[-1].loss_after


def test_data_that_are_not_there_are_missed_in_one_line_before_anything_is_run(
    tmp_path: Path,
) -> None:
    done = asyncfeded("paper", "--out", tmp_path / "paper", "--data-dir", tmp_path / "none")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "task 'femnist' needs data in" in done.stderr
    assert not list((tmp_path / "paper" / "store").glob("*"))


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--figure", "15"), "figure must be from 1 to 14; given 15"),
        (("--suspension", "1"), "suspension must be at least 0 and below 1; given 1.0"),
        (("--workers", "0"), "workers must be at least 1; given 0"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(
    tmp_path: Path, option: tuple[str, str], said: str
) -> None:
    done = asyncfeded("paper", "--task", "synthetic-1-1", *option, "--out", tmp_path / "paper")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_is_none_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "sweeps.db").write_bytes(b"this is no database of anybody's, and long enough" * 50)
    done = asyncfeded("paper", "--task", "synthetic-1-1", "--table", "1", "--out", tmp_path)
    assert done.returncode == 2
    assert "sweeps.db' cannot be opened as a database of Optuna's: remove" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_report_can_be_made_of_the_runs_that_there_are(
    small_evaluation: Path, tmp_path: Path
) -> None:
    shutil.copytree(small_evaluation / "store", tmp_path / "store")
    for path in sorted((tmp_path / "store").iterdir())[::2]:
        path.unlink()
    done = asyncfeded(*SMALL_EVALUATION, "--report-only", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    left = {path.stem for path in (tmp_path / "store").iterdir()}
    assert {row["run"] for row in rows_of(tmp_path / "results.csv")} == left
    assert (tmp_path / "report.html").exists()


def test_a_run_without_its_parts_is_damaged(small_evaluation: Path, tmp_path: Path) -> None:
    shutil.copytree(small_evaluation / "store", tmp_path / "store")
    path = next(iter((tmp_path / "store").iterdir()))
    path.write_text(f'{{"key":"{path.stem}"}}')
    done = asyncfeded(*SMALL_EVALUATION, "--report-only", "--out", tmp_path)
    assert done.returncode == 2
    assert f"{path.name}' is damaged: remove the file" in done.stderr


@pytest.mark.slow
def test_a_target_that_some_seeds_miss_is_told_as_such(tmp_path: Path) -> None:
    done = asyncfeded(
        "paper", "--study", "--seeds", "2", "--seconds", "1", "--task", "synthetic-1-1",
        "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "report.html").read_text()
    assert "0 of 2" in report
    assert "Robustness" not in report
    variants = rows_of(tmp_path / "results.csv")
    told_apart = [tuple(v for k, v in row.items() if k not in RESULT_COLUMNS) for row in variants]
    assert len(set(told_apart)) == len(variants)


RESULT_COLUMNS = (
    *("max_accuracy", "final_accuracy", "t90_seconds", "updates", "log_sha256", "run"),
)


@pytest.mark.parametrize("task", ["synthetic-1-1", "femnist"])
def test_a_report_of_no_runs_needs_no_data_and_does_not_count_them(
    task: str, tmp_path: Path
) -> None:
    words = ("--task", task, "--figure", "1", "--figure", "5", "--report-only")
    done = asyncfeded("paper", *words, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "results.csv") == []
    report = (tmp_path / "RESULTS.md").read_text()
    assert "## Figure 1" in report
    assert "Figure 5" not in report
    assert "0 runs" not in report
