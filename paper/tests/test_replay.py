"""The script behind readings/, on rounds of a made-up machine."""

import csv
import gzip
import sys
from pathlib import Path
from random import Random

import pytest

import replay
from asyncfeded.simulation import FIRST_SEED

ROUNDS = 4
SECONDS_PER_EPOCH = 0.05
FEDASYNC, ASYNCFEDED = (10, 10, 10, 10), (10, 12, 9, 9)
"""K of every client's rounds."""


def rows_of(client: int, rule: str, epochs: tuple[int, ...]) -> list[dict[str, object]]:
    """Rounds as long as the epochs and a transfer take; its coefficient is the authors' draw."""
    draw = Random(FIRST_SEED + client)  # noqa: S311
    rows: list[dict[str, object]] = []
    for number, k in enumerate(epochs):
        coefficient = 0.5 + draw.random()
        draw.random()  # whether the round is lost: never at P = 0
        seconds = SECONDS_PER_EPOCH * k + replay.TRANSFER_SECONDS["synthetic-1-1"] * coefficient
        rows.append(
            {"task": "synthetic-1-1", "rule": rule, "suspension": 0, "run": 0, "client": client}
            | {"round": number, "seconds": seconds, "lost": 0}
        )
    return rows


@pytest.fixture
def rounds(tmp_path: Path) -> Path:
    path = tmp_path / "rounds.csv.gz"
    rows = [
        row
        for client in range(replay.CLIENTS)
        for rule, epochs in (("fedasync-constant", FEDASYNC), ("asyncfeded", ASYNCFEDED))
        for row in rows_of(client, rule, epochs)
    ]
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_epochs_of_a_round_are_read_off_its_length(rounds: Path) -> None:
    rows = replay.read(rounds, "synthetic-1-1", 0.0, "0")
    timeline = replay.timeline("synthetic-1-1", 0.0, 3, rows)
    assert [one.epochs for one in timeline] == pytest.approx(ASYNCFEDED)
    assert [one.next_epochs for one in timeline] == pytest.approx([12, 9, 9, 9])


@pytest.mark.slow
def test_the_script_follows_the_clients_and_writes_its_table(
    rounds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = tmp_path / "k.csv"
    words = ["replay.py", str(rounds), "--seconds", "1.3", "--out", str(table)]
    monkeypatch.setattr(sys, "argv", words)
    replay.main()
    assert "20 updates in 1.3 s; accuracy " in capsys.readouterr().out
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["client"] for row in rows] == [str(client) for client in range(replay.CLIENTS)]
    assert all(float(row["median_gamma"]) > 0 for row in rows)
