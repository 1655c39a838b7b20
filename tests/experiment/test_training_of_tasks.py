"""Local training of the paper's tasks, as the authors ran it."""

from typing import Any

import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.run import resolve
from asyncfeded.experiment.settings import run_settings
from asyncfeded.tasks.registry import NAMED_TASKS, find_task


def resolved_with(**given: object) -> dict[str, Any]:
    settings = run_settings({"task": "synthetic-1-1", "clients": 2, **given})
    run = resolve(settings)
    return run.known(run.load_data())


def test_the_learning_rate_of_the_papers_tasks_decays_per_step() -> None:
    tasks = [find_task("synthetic-1-1"), *NAMED_TASKS.values()]
    assert {task.training.decay_per for task in tasks} == {"step"}


def test_the_batch_sizes_and_widths_are_those_that_fit_the_authors_curves() -> None:
    tasks = map(find_task, ("synthetic-1-1", "femnist", "shakespeare"))
    assert {t.name: (t.training.batch_size, t.widths) for t in tasks} == {
        "synthetic-1-1": (256, (400, 200)),
        "femnist": (32, (32, 64)),
        "shakespeare": (256, (8, 32)),
    }


def test_the_hinge_of_every_task_of_the_paper_measures_its_lag_in_seconds() -> None:
    tasks = [find_task("synthetic-1-1"), *NAMED_TASKS.values()]
    assert {task.rule_settings["fedasync-hinge"]["lag_in"] for task in tasks} == {"seconds"}


def test_how_often_the_rate_decays_is_the_task_s_unless_it_is_given() -> None:
    assert run_settings({}).decay_per is None
    assert resolved_with()["decay_per"] == "step"
    assert resolved_with(decay_per="round")["decay_per"] == "round"


def test_another_period_of_decay_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^decay_per must be 'round', 'epoch' or 'step'; given"):
        run_settings({"decay_per": "week"})
