"""The results of several rules and seeds, as tables and plots."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded.callbacks.goals import goal_of
from asyncfeded.comparison.columns import Texts, record_of, texts_of
from asyncfeded.comparison.figures import RuleFigures, figures_of
from asyncfeded.comparison.yardstick import Yardstick
from asyncfeded.core.arguments import require_number
from asyncfeded.core.errors import FileError, SettingError, require
from asyncfeded.core.metrics import ACCURACY, LOSS, Goal
from asyncfeded.files import write_json, write_table, write_text
from asyncfeded.report import plots
from asyncfeded.report.latex import latex_table
from asyncfeded.report.tables import as_text
from asyncfeded.result import TIME, Result
from asyncfeded.version import __version__

SEEDS_NAMED = 10


@dataclass(slots=True, repr=False)
class Comparison:
    """The results of several rules, `results[rule][seed]`, in the order in which they were run.

    Rules are compared by the best value of the `metric` in each run: accuracy by default, or loss
    for a task without accuracy. `goal` says whether it is to be high ("max") or low ("min"). With a
    `target`, the table says when it was reached. `by` gives the same results by another metric.
    """

    metric: str | None = None
    goal: Goal | None = None
    target: float | None = None
    results: dict[str, dict[int, Result]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        goal_of(self.metric or ACCURACY, self.goal)
        if self.target is None:
            return
        require_number("target", self.target)
        require(isfinite(self.target), "target", "finite", self.target)
        if self.metric in (None, ACCURACY) and not 0 < self.target <= 1:
            hint = ": name another metric by metric=…" if self.metric is None else ""
            limit = "above 0 and at most 1 for accuracy"
            raise SettingError(f"target must be {limit}; given {self.target!r}{hint}")

    def add(self, rule: str, seed: int, result: Result) -> None:
        """Add a finished run."""
        self.results.setdefault(rule, {})[seed] = result

    def by(
        self, metric: str, goal: Goal | None = None, target: float | None = None
    ) -> "Comparison":
        """The same results, compared by another metric."""
        known = dict.fromkeys(name for run in self._runs() for name in run.metrics)
        if metric not in known:
            raise SettingError(
                f"metric must be one that was measured, {', '.join(known)}; given {metric!r}"
            )
        return replace(self, metric=metric, goal=goal, target=target)

    def table(self) -> list[RuleFigures]:
        """The figures of every rule over its seeds."""
        return figures_of(self.results, self._yardstick(), self.target)

    def texts(self) -> Texts:
        """The table for a reader: headings and cells."""
        return texts_of(self.table(), self._yardstick(), self.target)

    def refusals(self) -> list[str]:
        """A line for every rule that refused updates."""
        return [
            f"{row.rule}: {_count(row.refused, 'update')} {_were(row.refused)} refused"
            for row in self.table()
            if row.refused
        ]

    def curves(self) -> tuple[list[float], Mapping[str, npt.NDArray[np.float64]]]:
        """The times of evaluation, and per rule the metric as (seeds, times).

        A run that was stopped early has NaN from then on.
        """
        name = self._yardstick().metric
        longest = max((run.curve for run in self._runs()), key=len, default=[])
        seconds = [point.seconds for point in longest]
        values = {}
        for rule, runs in self.results.items():
            courses = [{p.seconds: p.metrics.get(name) for p in r.curve} for r in runs.values()]
            rows = [[course.get(at) for at in seconds] for course in courses]
            values[rule] = np.array(rows, dtype=np.float64)  # None becomes NaN
        return seconds, values

    def plot(self, path: str | Path, title: str = "") -> None:
        """Draw the metric over time: the mean over seeds, in a band of one standard deviation.

        A line ends where the first of its seeds was stopped.
        """
        clock = next((TIME[run.clock] for run in self._runs()), TIME["virtual"])
        plots.rules_over_time(path, *self.curves(), title, clock, self._yardstick().metric)

    def to_csv(self, path: str | Path) -> None:
        """Write the table as CSV, with every figure of `table()` in a column."""
        records = self._records()
        headings = list(records[0]) if records else []
        write_table(path, headings, [list(record.values()) for record in records])

    def to_latex(self, path: str | Path | None = None) -> str:
        r"""The table in LaTeX, the best in bold; also written to the file `path`, if given.

        The document needs \usepackage{booktabs}.
        """
        texts = self.texts()
        latex = latex_table(texts.headings, texts.rows, texts.bold)
        if path is not None:
            write_text(path, latex)
        return latex

    def to_pandas(self) -> Any:
        """The table as a DataFrame of pandas, which must be installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise SettingError(
                "pandas is not installed, which to_pandas needs: pip install pandas"
            ) from None
        return DataFrame.from_records(self._records())

    def write(self, folder: Path, title: str, finished: bool = True) -> None:
        """Write compare.csv, compare.png and, last of all, summary.json."""
        self.to_csv(folder / "compare.csv")
        self.plot(folder / "compare.png", title)
        summary = {
            "finished": finished,
            "rules": self._records(),
            "runs": [run.summary() for run in self._runs()],
            "package_version": __version__,
        }
        write_json(folder / "summary.json", summary)

    @contextmanager
    def written_to(self, folder: Path, title: str) -> Iterator[None]:
        """Write the files when the block ends; after an error, those of the finished runs."""
        try:
            yield
        except BaseException:
            if self.results:
                with suppress(FileError):  # what ended the block is the error to be seen
                    self.write(folder, title, finished=False)
            raise
        self.write(folder, title)

    def __repr__(self) -> str:
        seeds = list(dict.fromkeys(seed for runs in self.results.values() for seed in runs))
        if not seeds:
            return "Comparison of no runs"
        more = ", …" if len(seeds) > SEEDS_NAMED else ""
        named = ", ".join(map(str, seeds[:SEEDS_NAMED])) + more
        title = f"{_count(len(self.results), 'rule')}, {_count(len(seeds), 'seed')}: {named}"
        texts = self.texts()
        return as_text(title, texts.headings, texts.rows)

    def _yardstick(self) -> Yardstick:
        name = self.metric
        if name is None:
            measured = {metric for run in self._runs() for metric in run.metrics}
            name = LOSS if LOSS in measured and ACCURACY not in measured else ACCURACY
        return Yardstick(name, goal_of(name, self.goal))

    def _runs(self) -> list[Result]:
        return [run for runs in self.results.values() for run in runs.values()]

    def _records(self) -> list[dict[str, Any]]:
        return [record_of(row, self._yardstick(), self.target) for row in self.table()]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
