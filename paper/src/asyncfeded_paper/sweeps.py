"""Tables 1 to 4: the paper's sweeps over hyperparameters.

Every point of a sweep is a run like any other, so that none is made twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from asyncfeded.experiment import RunSettings, find_task
from asyncfeded_paper.authors import authors_cells
from asyncfeded_paper.plan import Cell, Plan, settings_of
from asyncfeded_paper.record import Record
from asyncfeded_paper.results import Find
from asyncfeded_paper.scope import USUAL_SUSPENSION

Point = dict[str, float]

TARGET_SHARE = 0.9
DEFAULT_TARGET = 0.5


@dataclass(frozen=True, slots=True)
class SweptRule:
    """A table of the paper: a rule, and the values that it was tried with."""

    rule: str
    ranges: Mapping[str, tuple[float, ...]]

    def hyperparameters(self, point: Point) -> Point:
        """What the rule is given: the paper sweeps λ/ε and λ, the rule has λ and ε."""
        values = dict(point)
        if "lam_over_eps" in values:
            values["eps"] = values["lam"] / values.pop("lam_over_eps")
        return values

    def selected(self, task: str) -> Point:
        """What the paper chose for this task."""
        chosen = dict(find_task(task).rule_settings.get(self.rule, {}))
        if "eps" in chosen:
            chosen["lam_over_eps"] = chosen["lam"] / chosen["eps"]
        return {name: float(chosen[name]) for name in self.ranges}

    def points(self, task: str, whole_grid: bool) -> list[Point]:
        """All combinations; or only those that differ from the paper's choice in one value."""
        chosen = self.selected(task)
        combinations = product(*self.ranges.values())
        grid = [dict(zip(self.ranges, values, strict=True)) for values in combinations]
        if whole_grid:
            return grid
        return [point for point in grid if sum(point[n] != chosen[n] for n in point) <= 1]

    def runs(self, plan: Plan, task: str) -> list[tuple[Point, RunSettings]]:
        """The run of every point that the plan tries."""
        found = []
        for point in self.points(task, whole_grid=plan.scale == "full"):
            given = tuple(self.hyperparameters(point).items())
            cell = Cell(task, self.rule, USUAL_SUSPENSION, given)
            found.append((point, settings_of(plan, cell, seed=0)))
        return found


SWEEPS = {
    1: SweptRule("fedprox", {"mu": (0.001, 0.01, 0.1, 0.5, 1.0)}),
    2: SweptRule("fedasync-constant", {"alpha": (0.01, 0.1, 0.3, 0.5, 0.9)}),
    3: SweptRule(
        "fedasync-hinge", {"a": (0.5, 1.0, 5.0, 10.0, 15.0), "b": (0.5, 1.0, 5.0, 10.0, 15.0)}
    ),
    4: SweptRule(
        "asyncfeded",
        {
            "lam_over_eps": (0.1, 0.5, 1.0, 3.0),
            "lam": (1.0, 3.0, 5.0, 10.0),
            "gamma_bar": (0.1, 0.5, 1.0, 3.0, 5.0),
            "kappa": (0.01, 0.05, 0.1, 0.5, 1.0),
        },
    ),
}
"""By the number of the table."""


def target_accuracy(task: str) -> float:
    """The accuracy that runs of a task are timed to: 0.9 of the authors' best at P = 0.1."""
    best = [
        cell.max_accuracy.mean
        for (of_task, _, suspension), cell in authors_cells().items()
        if of_task == task.removesuffix("-standin") and suspension == USUAL_SUSPENSION
    ]
    return TARGET_SHARE * max(best) if best else DEFAULT_TARGET


@dataclass(frozen=True, slots=True)
class Ranked:
    """A point of a sweep with what it gave."""

    point: Point
    max_accuracy: float
    seconds_to_target: float


def results(plan: Plan, table: int, task: str, find: Find) -> list[tuple[Point, Record]]:
    """The points that were run."""
    runs = ((point, find(settings)) for point, settings in SWEEPS[table].runs(plan, task))
    return [(point, run) for point, run in runs if run is not None]


def ranking(task: str, found: Iterable[tuple[Point, Record]]) -> list[Ranked]:
    """The points that were run, the highest accuracy first."""
    target = target_accuracy(task)
    rows = [Ranked(point, run.max_accuracy, run.seconds_to(target)) for point, run in found]
    return sorted(rows, key=lambda row: (-row.max_accuracy, row.seconds_to_target))
