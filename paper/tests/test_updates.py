"""How many updates the paper's devices make, beside the authors' counts."""

import csv
from pathlib import Path

import pytest

from asyncfeded_paper.authors import authors_cells
from asyncfeded_paper.updates import busy_share, count_updates, predictions
from command_line import asyncfeded_here as asyncfeded


def authors(task: str, rule: str, suspension: float) -> float:
    return authors_cells()[task, rule, suspension].updates


@pytest.mark.parametrize("suspension", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("rule", ["fedavg", "fedasync-constant"])
def test_with_the_authors_hangs_femnist_has_their_number_of_updates(
    rule: str, suspension: float
) -> None:
    found = count_updates("femnist", rule, suspension, seed=None)
    assert found == pytest.approx(authors("femnist", rule, suspension), rel=0.05)


@pytest.mark.parametrize("suspension", [0.0, 0.1, 0.5])
def test_with_drawn_hangs_femnist_has_about_their_number_of_updates(suspension: float) -> None:
    found = count_updates("femnist", "fedasync-constant", suspension, seed=0)
    assert found == pytest.approx(authors("femnist", "fedasync-constant", suspension), rel=0.1)


def test_synchronous_updates_count_when_their_round_is_over() -> None:
    # 10 clients and nobody lost: whole rounds of 10.
    assert count_updates("synthetic-1-1", "fedavg", 0.0, seed=0) % 10 == 0


def test_shakespeares_two_groups_of_runs_are_both_met_exactly() -> None:
    # The authors' FedAvg runs at P = 0.2: 49 updates in two, 81 in five.
    quiet = count_updates("shakespeare", "fedavg", 0.2, None)
    busy = count_updates("shakespeare", "fedavg", 0.2, None, "paper-shakespeare-busy")
    assert (quiet, busy) == (81, 49)
    assert busy_share("shakespeare", "fedavg", 0.2) == 2 / 7
    (cell,) = (c for c in predictions(["shakespeare"], [0.2], 1) if c.rule == "fedavg")
    assert cell.replayed == pytest.approx(71.857, abs=0.001)
    assert cell.replayed_ratio == pytest.approx(1.0, abs=0.01)


def test_the_command_prints_a_table_and_writes_it(tmp_path: Path) -> None:
    done = asyncfeded(
        *("paper", "--predict-updates", "--task", "shakespeare", "--suspension", "0.9"),
        *("--seeds", "1", "--out", tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert "shakespeare: updates in 300 s" in done.stdout
    with (tmp_path / "tables" / "updates.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rule"] for row in rows] == [
        "fedavg",
        "fedprox",
        "fedasync-constant",
        "fedasync-hinge",
    ]
    assert not (tmp_path / "store").exists()
