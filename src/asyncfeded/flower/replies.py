"""What the server reads in the replies of nodes, which may hold anything."""

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Message

from asyncfeded.core.messages import ClientUpdate, Refusal, TrainTask
from asyncfeded.core.validation import MOST_FIGURES
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec, UnfitRecordError
from asyncfeded.flower.records import (
    CLIENT,
    LOCAL_STEPS,
    NUM_EXAMPLES,
    TRAIN_SECONDS,
    arrays_of,
    config_of,
    only_one,
)

NO_DELTA: Any = np.empty(0, np.float64)
"""Stands for arrays that cannot be read: it is refused as of the wrong type."""
WRONG_LENGTH: Vector = np.empty(0, np.float32)
NO_NUMBER: Any = "?"
LONGEST_NAME = 200


class Trained(NamedTuple):
    """A reply as the server takes it: an update, what was wrong with it, and the time it took."""

    update: ClientUpdate
    unfit: str | None
    train_seconds: float | None


def read_trained(reply: Message, task: TrainTask, codec: Codec) -> Trained:
    """The update in a reply to a task; whatever is unfit becomes an update that is refused."""
    metrics = dict(only_one(reply.content.metric_records) or {})
    examples = whole(metrics.pop(NUM_EXAMPLES, NO_NUMBER))
    steps = metrics.pop(LOCAL_STEPS, None)
    seconds = metrics.pop(TRAIN_SECONDS, None)
    unfit = None
    try:
        delta = codec.vector(arrays_of(reply))
        with np.errstate(over="ignore", invalid="ignore"):  # the server refuses what is not finite
            np.subtract(delta, task.parameters, out=delta)
    except UnfitRecordError as error:
        unfit = str(error)
        delta = WRONG_LENGTH if error.refusal == Refusal.WRONG_LENGTH else NO_DELTA
    if unfit is None and examples is NO_NUMBER:
        unfit = f"a reply must have a metric {NUM_EXAMPLES!r}, a whole number"
    figures = {name: float(v) for name, v in metrics.items() if isinstance(v, int | float)}
    update = ClientUpdate(
        client_id=task.client_id,
        version=task.version,
        delta=delta,
        num_examples=examples,
        epochs=task.epochs,
        round=task.round,
        steps=None if steps is None else whole(steps),
        figures=dict(list(figures.items())[:MOST_FIGURES]),
    )
    took = float(seconds) if isinstance(seconds, int | float) and isfinite(seconds) else None
    return Trained(update, unfit, took)


def read_evaluated(reply: Message) -> tuple[float, dict[str, float]] | None:
    """The weight and the metrics of a client's evaluation; None if there is no sense in it."""
    metrics = dict(only_one(reply.content.metric_records) or {})
    weight = metrics.pop(NUM_EXAMPLES, None)
    if not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        return None
    numbers = {name: float(v) for name, v in metrics.items() if isinstance(v, int | float)}
    return float(weight), dict(list(numbers.items())[:MOST_FIGURES])


def read_name(reply: Message) -> str | None:
    """The name with which our ClientApp has answered."""
    name = config_of(reply).get(CLIENT)
    right = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
    return name if right else None


def whole(number: object) -> Any:
    """A count as a whole number; anything else stays what it is not."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if type(number) is int else NO_NUMBER
