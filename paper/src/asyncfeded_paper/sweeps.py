"""Tables 1 to 4: the paper's sweeps over hyperparameters, kept as Optuna studies in SQLite.

Every point of a sweep is a run like any other, so that none is made twice; the study holds the
points and what they gave, and can be opened with Optuna's own tools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from sqlalchemy import URL
from sqlalchemy.exc import SQLAlchemyError

from asyncfeded import FileError
from asyncfeded.experiment import RunSettings, find_task
from asyncfeded_paper.authors import authors_cells
from asyncfeded_paper.plan import Cell, Plan, settings_of
from asyncfeded_paper.record import RESULTS, Record
from asyncfeded_paper.scope import USUAL_SUSPENSION
from asyncfeded_paper.work import Laboratory, Unit

Point = dict[str, float]

TARGET_SHARE = 0.9
DEFAULT_TARGET = 0.5


@dataclass(frozen=True, slots=True)
class Sweep:
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


SWEEPS = {
    1: Sweep("fedprox", {"mu": (0.001, 0.01, 0.1, 0.5, 1.0)}),
    2: Sweep("fedasync-constant", {"alpha": (0.01, 0.1, 0.3, 0.5, 0.9)}),
    3: Sweep(
        "fedasync-hinge", {"a": (0.5, 1.0, 5.0, 10.0, 15.0), "b": (0.5, 1.0, 5.0, 10.0, 15.0)}
    ),
    4: Sweep(
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


class SweepStudy:
    """One table for one task, as a study."""

    def __init__(self, folder: Path, plan: Plan, table: int, task: str) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._plan = plan
        self._task = task
        self._sweep = SWEEPS[table]
        self._points = self._sweep.points(task, whole_grid=plan.scale == "full")
        seconds = plan.seconds_of(task)
        database = folder / "sweeps.db"
        try:
            self._study = optuna.create_study(
                storage=URL.create("sqlite", database=str(database)).render_as_string(),
                study_name=f"table {table}, {task}, {plan.scale}, {seconds:g} s, results {RESULTS}",
                directions=["maximize", "minimize"],
                load_if_exists=True,
            )
        except (SQLAlchemyError, StorageInternalError):
            raise FileError(
                f"sweeps {str(database)!r} cannot be opened as a database of Optuna's: remove the "
                "file, and it will be made anew from the runs in the store"
            ) from None

    def units(self) -> list[Unit]:
        """Every point: the store says which are there, the study notes what they gave."""
        return [Unit(self._settings(point), partial(self._note, point)) for point in self._points]

    def results(self, laboratory: Laboratory) -> list[tuple[Point, Record]]:
        """The points that were run."""
        runs = ((point, laboratory.find(self._settings(point))) for point in self._points)
        return [(point, run) for point, run in runs if run is not None]

    def _note(self, point: Point, record: Record) -> None:
        """Add a finished trial, unless the study has it."""
        known = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if any(trial.user_attrs.get("run") == record.key for trial in known):
            return
        trial = optuna.trial.create_trial(
            params=dict(point),
            distributions={
                name: CategoricalDistribution(values) for name, values in self._sweep.ranges.items()
            },
            values=[record.max_accuracy, record.seconds_to(target_accuracy(self._task))],
            user_attrs={"run": record.key},
        )
        self._study.add_trial(trial)

    def ranking(self, laboratory: Laboratory) -> list[Ranked]:
        """All points that were run, the highest accuracy first."""
        target = target_accuracy(self._task)
        found = [
            Ranked(point, run.max_accuracy, run.seconds_to(target))
            for point, run in self.results(laboratory)
        ]
        return sorted(found, key=lambda row: (-row.max_accuracy, row.seconds_to_target))

    def _settings(self, point: Point) -> RunSettings:
        given = tuple(self._sweep.hyperparameters(point).items())
        cell = Cell(self._task, self._sweep.rule, USUAL_SUSPENSION, given)
        return settings_of(self._plan, cell, seed=0)
