"""Several rules and seeds side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded.core.metrics import ACCURACY
from asyncfeded.files import write_json, write_table
from asyncfeded.report import plots
from asyncfeded.report.spread import Spread, spread
from asyncfeded.result import TIME, Result
from asyncfeded.version import __version__


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """One row of the table."""

    task: str
    rule: str
    seeds: int
    max_accuracy: Spread
    final_accuracy: Spread
    t90_seconds: Spread
    client_accuracy_p5: Spread
    client_accuracy_p95: Spread
    updates: Spread
    rejected: int
    wall_seconds: float


class Comparison:
    """The results of a comparison, by rule in the order in which they were run."""

    def __init__(self) -> None:
        self._results: dict[str, list[Result]] = {}

    def add(self, rule: str, result: Result) -> None:
        """Add a finished run."""
        self._results.setdefault(rule, []).append(result)

    def table(self) -> list[RuleFigures]:
        """The figures of every rule over its seeds."""
        return [_figures(rule, results) for rule, results in self._results.items()]

    def refused(self) -> dict[str, int]:
        """The rules that refused updates, and how many."""
        return {row.rule: row.rejected for row in self.table() if row.rejected}

    def curves(self) -> tuple[list[float], Mapping[str, npt.NDArray[np.float64]]]:
        """The times of evaluation, and per rule the accuracies as (seeds, times)."""
        first = next(iter(self._results.values()))[0]
        seconds = [point.seconds for point in first.curve]
        accuracy = {
            rule: np.array([run.metric(ACCURACY) for run in results])
            for rule, results in self._results.items()
        }
        return seconds, accuracy

    def write(self, folder: Path, title: str) -> None:
        """Write compare.csv, compare.png and, when all else is there, summary.json."""
        rows = [_flat(row) for row in self.table()]
        write_table(folder / "compare.csv", list(rows[0]), [list(row.values()) for row in rows])
        seconds, accuracy = self.curves()
        clock = next(iter(self._results.values()))[0].clock
        plots.rules_over_time(folder / "compare.png", seconds, accuracy, title, TIME[clock])
        runs = [result.summary() for results in self._results.values() for result in results]
        summary = {"rules": rows, "runs": runs, "package_version": __version__}
        write_json(folder / "summary.json", summary)


def _figures(rule: str, results: Sequence[Result]) -> RuleFigures:
    return RuleFigures(
        task=str(results[0].settings.get("task", "")),
        rule=rule,
        seeds=len(results),
        max_accuracy=spread(result.max_accuracy for result in results),
        final_accuracy=spread(last for result in results for last in result.metric(ACCURACY)[-1:]),
        t90_seconds=spread(result.t90_seconds for result in results),
        client_accuracy_p5=spread(result.client_accuracy(5) for result in results),
        client_accuracy_p95=spread(result.client_accuracy(95) for result in results),
        updates=spread(result.updates for result in results),
        rejected=sum(sum(result.rejected.values()) for result in results),
        wall_seconds=sum(result.wall_seconds for result in results),
    )


def _flat(row: RuleFigures) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name in row.__slots__:
        value = getattr(row, name)
        if isinstance(value, Spread):
            flat |= {f"{name}_mean": value.mean, f"{name}_sd": value.sd}
        else:
            flat[name] = value
    return flat
