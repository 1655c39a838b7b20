"""Small things that many tests build."""

from collections.abc import Sequence

import numpy as np

from asyncfeded import ClientUpdate, TrainTask
from asyncfeded.core.rule import Arrival, Work
from asyncfeded.core.vectors import Vector, norm_and_distance
from asyncfeded.runtime.transport import Signal


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


def answer(task: TrainTask, delta: Sequence[float], num_examples: int = 1) -> ClientUpdate:
    """The update that a client with this task would send."""
    return ClientUpdate(
        client_id=task.client_id,
        version=task.version,
        delta=vector(*delta),
        num_examples=num_examples,
        epochs=task.epochs,
        round=task.round,
    )


def arrival(
    delta: Sequence[float],
    base: Sequence[float],
    current: Sequence[float],
    lag: int = 1,
    epochs: float = 10,
    num_examples: int = 1,
) -> Arrival:
    delta_norm, distance = norm_and_distance(vector(*delta), vector(*current), vector(*base))
    return Arrival(
        client_id="a",
        delta=vector(*delta),
        base=vector(*base),
        current=vector(*current),
        lag=lag,
        num_examples=num_examples,
        work=Work(epochs),
        delta_norm=delta_norm,
        distance=distance,
    )


class Fixed:
    """A transport that brings these signals, whatever is sent."""

    def __init__(self, *signals: Signal) -> None:
        self.sent: list[TrainTask] = []
        self._signals = iter(signals)

    def send(self, task: TrainTask) -> None:
        self.sent.append(task)

    def next_signal(self) -> Signal | None:
        return next(self._signals, None)

    def close(self) -> None:
        pass
