"""A worker's job, in any process: failures name the client and the round."""

import traceback
from typing import Any

from asyncfeded.core.errors import AsyncFedEDError, TrainingError
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Measure

Key = tuple[str, int]
"""A client and its round; for an evaluation, no client and a number."""


Order = list[str | int | float]
"""A task without its parameters, as a list of plain values. Ray sends these without pickling them,
which would cost the server more than its arithmetic. A world may add values behind these."""
TASK_VALUES = 5


def key_of(task: TrainTask) -> Key:
    """The key of a task's result."""
    return task.client_id, task.round


def order_of(task: TrainTask) -> Order:
    """What to send beside a task's parameters."""
    return [task.client_id, task.version, task.epochs, task.round, task.proximal_mu]


def ordered_task(order: Any, parameters: Vector) -> TrainTask:
    """The task that was sent."""
    client_id, version, epochs, number, proximal_mu = order[:TASK_VALUES]
    return TrainTask(client_id, version, parameters, epochs, number, proximal_mu)


def measured(measure: Measure | None, parameters: Vector) -> Evaluation:
    """Measure parameters."""
    assert measure is not None
    try:
        return measure(parameters)
    except AsyncFedEDError:
        raise
    except Exception as error:
        failure = TrainingError(f"evaluation failed: {error!r}")
        failure.add_note("".join(traceback.format_exception(error)))
        raise failure from error


def trained(train: Train, task: TrainTask) -> ClientUpdate:
    """Train a task."""
    update: object = train(task)
    if not isinstance(update, ClientUpdate):
        raise TypeError(f"training must return a ClientUpdate; given {type(update).__name__}")
    return update


def trained_here(train: Train, task: TrainTask) -> ClientUpdate:
    """Train a task in this process; a failure names its client and round."""
    try:
        return trained(train, task)
    except Exception as error:
        raise training_error(key_of(task), repr(error)) from error


def training_error(key: Key, failure: str) -> TrainingError:
    """Name the client and the round of a failure; notes follow its first line."""
    client_id, round_number = key
    what, _, notes = failure.partition("\n")
    error = TrainingError(
        f"training of client {client_id!r} failed in round {round_number}: {what}"
    )
    if notes:
        error.add_note(notes)
    return error
