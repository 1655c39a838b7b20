"""The table of a comparison: texts for a reader, plain values for a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from asyncfeded.comparison.figures import RuleFigures
from asyncfeded.comparison.yardstick import Yardstick
from asyncfeded.report.spread import Spread
from asyncfeded.report.tables import mean_and_spread

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Texts:
    """A table for a reader; `bold` has the (row, column) of each best value."""

    headings: list[str]
    rows: list[list[str]]
    bold: set[tuple[int, int]]


def texts_of(rows: Sequence[RuleFigures], yardstick: Yardstick, target: float | None) -> Texts:
    """The table for a reader.

    Times to 90 % are never bold: each is to another value.
    """
    best = f"{yardstick.goal} {yardstick.metric}"
    after = "" if target is None else f"{yardstick.named(target)} after"
    columns = {
        "rule": [row.rule for row in rows],
        best: [_mean(row.best, row.seeds, yardstick.form) for row in rows],
    }
    if yardstick.goal == "max":
        columns["90 % of its own maximum"] = [_time(row.t90_seconds, row.seeds) for row in rows]
    if after:
        columns[after] = [_time_to_target(row) for row in rows]
    if len(rows) > 1:
        columns["p vs. best"] = [_p(row) for row in rows]
    if not all(isnan(row.client_accuracy_p5.mean) for row in rows):
        columns["clients 5–95 %"] = [_clients(row) for row in rows]
    columns["updates"] = [_mean(row.updates, row.seeds, ".0f") for row in rows]

    headings = list(columns)
    values = {best: [yardstick.sign * row.best.mean for row in rows]}
    if after:
        whole = (row.reached == row.seeds for row in rows)
        values[after] = [
            -row.target_seconds.mean if all_came else nan
            for row, all_came in zip(rows, whole, strict=True)
        ]
    bold = {
        (place, headings.index(heading))
        for heading, of_rules in values.items()
        for place in _highest(of_rules)
    }
    return Texts(headings, [list(cells) for cells in zip(*columns.values(), strict=True)], bold)


def record_of(row: RuleFigures, yardstick: Yardstick, target: float | None) -> dict[str, Any]:
    """One row for a program, with a plain value per column."""
    record: dict[str, Any] = {"task": row.task} if row.task else {}
    record |= {"rule": row.rule, "seeds": row.seeds}
    record |= _both(f"{yardstick.goal}_{yardstick.metric}", row.best)
    record |= _both(f"final_{yardstick.metric}", row.final)
    if yardstick.goal == "max":
        record |= _both("t90_seconds", row.t90_seconds)
    if target is not None:
        record |= {"target": target, "target_reached": row.reached}
        record |= _both("target_seconds", row.target_seconds)
    record |= {"p_value": row.p_value, "paired_seeds": row.paired_seeds}
    record |= _both("client_accuracy_p5", row.client_accuracy_p5)
    record |= _both("client_accuracy_p95", row.client_accuracy_p95)
    record |= _both("updates", row.updates)
    return record | {"refused": row.refused, "wall_seconds": row.wall_seconds}


def _highest(values: Sequence[float]) -> list[int]:
    """The places of the highest value, which may be there twice; none if nothing is known."""
    known = [value for value in values if not isnan(value)]
    return [place for place, value in enumerate(values) if known and value == max(known)]


def _both(name: str, value: Spread) -> dict[str, float]:
    return {f"{name}_mean": value.mean, f"{name}_sd": value.sd}


def _mean(value: Spread, seeds: int, form: str) -> str:
    return UNKNOWN if isnan(value.mean) else mean_and_spread(value.mean, value.sd, seeds, form)


def _time(seconds: Spread, seeds: int) -> str:
    text = _mean(seconds, seeds, ".0f" if seconds.mean >= 10 else ".1f")
    return text if text == UNKNOWN else f"{text} s"


def _time_to_target(row: RuleFigures) -> str:
    if row.reached == 0:
        return "never"
    time = _time(row.target_seconds, row.reached)
    return time if row.reached == row.seeds else f"{time}, {row.reached} of {row.seeds}"


def _p(row: RuleFigures) -> str:
    if row.is_best:
        return "best"
    if row.p_value is None:
        return UNKNOWN if isnan(row.best.mean) else "n too small"
    return "< 0.001" if row.p_value < 0.001 else f"{row.p_value:.3f}"


def _clients(row: RuleFigures) -> str:
    low, high = row.client_accuracy_p5.mean, row.client_accuracy_p95.mean
    return UNKNOWN if isnan(low) else f"{low:.0%}–{high:.0%}"
