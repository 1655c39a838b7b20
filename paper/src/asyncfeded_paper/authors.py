"""The authors' own results, reduced from the raw files at github.com/Qiyr0/AsyncFedED.

`authors.csv` has the maximum accuracy and the time to 90 % of it for every cell (3 tasks × 5 rules
× 10 values of P, 4 to 17 runs each), as means and standard deviations. `authors_curves.csv` has the
mean accuracy and loss every 10 seconds for four values of P.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from asyncfeded.report import Spread


@dataclass(frozen=True, slots=True)
class AuthorsCell:
    """What the authors measured for one task, rule and P; accuracies as shares of 1."""

    runs: int
    max_accuracy: Spread
    t90_seconds: Spread
    updates: float


@dataclass(frozen=True, slots=True)
class AuthorsCurve:
    """The authors' mean accuracy, as a share of 1, and mean loss over time."""

    seconds: list[float]
    accuracy: list[float]
    loss: list[float]


@cache
def authors_cells() -> dict[tuple[str, str, float], AuthorsCell]:
    """All 150 cells, by task, rule and P."""
    return {
        (row["task"], row["rule"], float(row["suspension_probability"])): AuthorsCell(
            runs=int(row["runs"]),
            max_accuracy=Spread(
                float(row["max_accuracy_mean"]) / 100, float(row["max_accuracy_sd"]) / 100
            ),
            t90_seconds=Spread(float(row["t90_seconds_mean"]), float(row["t90_seconds_sd"])),
            updates=float(row["server_iterations_mean"]),
        )
        for row in _rows("authors.csv")
    }


@cache
def authors_curves() -> dict[tuple[str, str, float], AuthorsCurve]:
    """The curves at P = 0, 0.1, 0.5 and 0.9, by task, rule and P."""
    curves: dict[tuple[str, str, float], AuthorsCurve] = {}
    for row in _rows("authors_curves.csv"):
        key = (row["task"], row["rule"], float(row["suspension_probability"]))
        curve = curves.setdefault(key, AuthorsCurve([], [], []))
        curve.seconds.append(float(row["seconds"]))
        curve.accuracy.append(float(row["accuracy_mean"]) / 100)
        curve.loss.append(float(row["loss_mean"]))
    return curves


def _rows(name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader((files(__package__) / name).read_text("utf-8").splitlines())
