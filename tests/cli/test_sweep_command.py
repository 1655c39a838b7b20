"""`asyncfeded sweep`, as a user types it."""

import csv
import json
import tomllib
from pathlib import Path

import pytest

from in_process import asyncfeded_here

QUICK = ["--seconds", "1", "--clients", "3", "--widths", "8,4", "--seed", "0", "--seed", "1"]
SEARCH = ["--search", "lam=1:10:log", "--search", "rounding=floor,carry", "--kappa", "0.5"]


@pytest.mark.slow
def test_a_second_call_goes_on_and_its_best_settings_can_be_run(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    command = ["sweep", *QUICK, *SEARCH, "--out", str(out), "--trials"]
    assert asyncfeded_here(*command, "1").stderr == ""
    with (out / "sweep.csv").open() as file:
        (first,) = csv.DictReader(file)
    done = asyncfeded_here(*command, "2", "--workers", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "trial 1:" not in done.stdout
    assert "the best 2 of 2 trials\n  trial   max accuracy " in done.stdout
    with (out / "sweep.csv").open() as file:
        again, second = csv.DictReader(file)
    assert again == first != second

    best = tomllib.loads((out / "best.toml").read_text())
    assert (best["kappa"], best["clients"], "seed" in best) == (0.5, 3, False)
    accuracies = []
    for seed in ("0", "1"):
        folder = tmp_path / seed
        options: list[str | Path] = ["--config", out / "best.toml", "--seed", seed, "--out", folder]
        assert asyncfeded_here("run", *options).returncode == 0
        summary = json.loads((folder / "summary.json").read_text())
        accuracies.append(summary["max_accuracy"])
    values = [float(trial["max accuracy"]) for trial in (first, second)]
    assert sum(accuracies) / 2 == pytest.approx(max(values))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "out must be given: the folder keeps the trials for a later call"),
        (["--out", "x"], "search must be given at least once, as NAME=LOW:HIGH, "),
        (["--out", "x", *SEARCH, "--lam", "1"], "lam must be searched or given, not both; given 1"),
        (["--out", "x", *SEARCH, "--trials", "0"], "Invalid value for '--trials': 0 is not in"),
    ],
)
def test_wrong_options_are_named_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = asyncfeded_here("sweep", *QUICK, *options)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_grid_of_ranges_and_an_unknown_metric_are_refused(tmp_path: Path) -> None:
    command = ["sweep", *QUICK, *SEARCH, "--out", str(tmp_path / "a"), "--trials", "1"]
    done = asyncfeded_here(*command, "--sampler", "grid")
    assert "search must list values for the sampler grid" in done.stderr
    done = asyncfeded_here(*command, "--metric", "f1")
    assert done.stderr == "error: metric must be one that is measured, accuracy, loss; given 'f1'\n"


def test_the_help_has_the_options_of_the_search_and_other_commands_do_not() -> None:
    text = asyncfeded_here("sweep", "--help").stdout
    for option in ("--search", "--trials", "--sampler", "--metric", "--lam", "--out"):
        assert option in text
    assert "The search" not in asyncfeded_here("run", "--help").stdout
