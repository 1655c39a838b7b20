"""Every task by name."""

import re
from collections.abc import Mapping

from asyncfeded.core.errors import SettingError
from asyncfeded.tasks.femnist import FEMNIST, FEMNIST_STANDIN
from asyncfeded.tasks.paper_task import RunnableTask
from asyncfeded.tasks.shakespeare import SHAKESPEARE, SHAKESPEARE_STANDIN
from asyncfeded.tasks.synthetic import synthetic_task

NAMED_TASKS: Mapping[str, RunnableTask] = {
    task.name: task for task in (FEMNIST, SHAKESPEARE, FEMNIST_STANDIN, SHAKESPEARE_STANDIN)
}
"""The tasks on images and on text; a stand-in is the same task on generated data."""


def find_task(name: str) -> RunnableTask:
    """The task of this name: one of the paper's, a stand-in, or synthetic-α-β for any α and β."""
    if name in NAMED_TASKS:
        return NAMED_TASKS[name]
    match = re.fullmatch(r"synthetic-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", name)
    if match is None:
        raise SettingError(
            f"task must be {', '.join(NAMED_TASKS)} or 'synthetic-α-β', such as 'synthetic-1-1'; "
            f"given {name!r}"
        )
    return synthetic_task(name, float(match[1]), float(match[2]))
