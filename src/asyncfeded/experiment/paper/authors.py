"""The authors' own results: maximum accuracy and time to 90 % of it, for every cell.

`authors.csv` reduces the raw result files that the authors published with the paper at
github.com/Qiyr0/AsyncFedED (3 tasks × 5 rules × 10 values of P, 4 to 17 runs each) to means and
standard deviations. They ran on data, models and machines of their own, of which they give
neither the clients nor the widths: regions and orders can be compared, not digits.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from asyncfeded.report.spread import Spread


@dataclass(frozen=True, slots=True)
class AuthorsCell:
    """What the authors measured for one task, rule and P; accuracies as shares of 1."""

    runs: int
    max_accuracy: Spread
    t90_seconds: Spread
    updates: float


@cache
def authors_cells() -> dict[tuple[str, str, float], AuthorsCell]:
    """All 150 cells, by task, rule and P."""
    text = (files(__package__) / "authors.csv").read_text("utf-8")
    return {
        (row["task"], row["rule"], float(row["suspension_probability"])): AuthorsCell(
            runs=int(row["runs"]),
            max_accuracy=Spread(
                float(row["max_accuracy_mean"]) / 100, float(row["max_accuracy_sd"]) / 100
            ),
            t90_seconds=Spread(float(row["t90_seconds_mean"]), float(row["t90_seconds_sd"])),
            updates=float(row["server_iterations_mean"]),
        )
        for row in csv.DictReader(text.splitlines())
    }
