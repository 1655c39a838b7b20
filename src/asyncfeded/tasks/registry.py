"""Every task by name."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from asyncfeded import own_code
from asyncfeded.core.errors import SettingError
from asyncfeded.tasks.femnist import FEMNIST, FEMNIST_STANDIN
from asyncfeded.tasks.own_task import own_task
from asyncfeded.tasks.paper_task import RunnableTask
from asyncfeded.tasks.shakespeare import SHAKESPEARE, SHAKESPEARE_STANDIN
from asyncfeded.tasks.synthetic import synthetic_task

NAMED_TASKS: Mapping[str, RunnableTask] = {
    task.name: task for task in (FEMNIST, SHAKESPEARE, FEMNIST_STANDIN, SHAKESPEARE_STANDIN)
}
"""The tasks on images and on text; a stand-in is the same task on generated data."""


def find_task(name: str, clients: int = 10, seed: int = 0) -> RunnableTask:
    """The task of this name: the paper's, a stand-in, synthetic-α-β, or a user's own.

    A user's task may depend on the number of clients and the seed of the data.
    """
    if name in NAMED_TASKS:
        return NAMED_TASKS[name]
    factory = own_code.load_factory("task", name)
    if factory is not None:
        return _own(name, factory, clients, seed)
    match = re.fullmatch(r"synthetic-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", name)
    if match is None:
        raise SettingError(
            f"task must be {', '.join([*NAMED_TASKS, *own_code.names('task')])}, 'synthetic-α-β', "
            f"such as 'synthetic-1-1', or FILE.py:factory; given {name!r}"
        )
    return synthetic_task(name, float(match[1]), float(match[2]))


@lru_cache(maxsize=1)
def _own(name: str, factory: Callable[..., Any], clients: int, seed: int) -> RunnableTask:
    """A user's task, made once: its factory may read or make all data."""
    return own_task(name, factory, clients, seed)
