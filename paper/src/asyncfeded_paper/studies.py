"""The sweeps of Tables 1 to 4 as Optuna studies in SQLite, to be opened with Optuna's own tools.

The store of runs says which points were run; a study notes what they gave.
"""

from functools import partial
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from sqlalchemy import URL
from sqlalchemy.exc import SQLAlchemyError

from asyncfeded import FileError
from asyncfeded_paper.plan import Plan
from asyncfeded_paper.record import RESULTS, Record
from asyncfeded_paper.sweeps import SWEEPS, Point, target_accuracy
from asyncfeded_paper.work import Unit

DATABASE = "sweeps.db"


class SweepStudy:
    """One table for one task, as a study."""

    def __init__(self, folder: Path, plan: Plan, table: int, task: str) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._plan = plan
        self._task = task
        self._sweep = SWEEPS[table]
        seconds = plan.seconds_of(task)
        database = folder / DATABASE
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
        runs = self._sweep.runs(self._plan, self._task)
        return [Unit(settings, partial(self._note, point)) for point, settings in runs]

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
