"""Whole experiments: from settings to results."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.experiment.hyperparameters import build_rule
    from asyncfeded.experiment.run import (
        ResolvedRun,
        as_tensors,
        initial_module,
        load_data,
        resolve,
        run_experiment,
    )
    from asyncfeded.experiment.settings import RunSettings, run_settings
    from asyncfeded.tasks.paper_task import PAPER_RULES
    from asyncfeded.tasks.registry import find_task

__all__ = [
    "PAPER_RULES",
    "ResolvedRun",
    "RunSettings",
    "as_tensors",
    "build_rule",
    "find_task",
    "initial_module",
    "load_data",
    "resolve",
    "run_experiment",
    "run_settings",
]

__getattr__ = later(
    __name__,
    {
        "PAPER_RULES": "asyncfeded.tasks.paper_task",
        "ResolvedRun": "asyncfeded.experiment.run",
        "RunSettings": "asyncfeded.experiment.settings",
        "as_tensors": "asyncfeded.experiment.run",
        "build_rule": "asyncfeded.experiment.hyperparameters",
        "find_task": "asyncfeded.tasks.registry",
        "initial_module": "asyncfeded.experiment.run",
        "load_data": "asyncfeded.experiment.run",
        "resolve": "asyncfeded.experiment.run",
        "run_experiment": "asyncfeded.experiment.run",
        "run_settings": "asyncfeded.experiment.settings",
    },
)
