"""A federation without torch: every client pulls the model towards a point of its own."""

from collections.abc import Callable

import numpy as np

from asyncfeded import ClientUpdate, TrainTask, randomness
from asyncfeded.core.vectors import Vector
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.suspension import Hangs

NAMES = ["client-0", "client-1", "client-2", "client-3"]
SIZE = 12


def toy_train(task: TrainTask) -> ClientUpdate:
    """A few noisy gradient steps on ½‖x − target‖²."""
    target = randomness.generator(7, "target", task.client_id).normal(size=SIZE)
    noise = randomness.generator(7, "noise", task.client_id, task.round)
    x = task.parameters.astype(np.float64)
    for _ in range(task.epochs):
        x -= 0.05 * (x - target + 0.1 * noise.normal(size=SIZE))
    return ClientUpdate(
        client_id=task.client_id,
        version=task.version,
        delta=(x - task.parameters).astype(np.float32),
        num_examples=10 + len(task.client_id),
        epochs=task.epochs,
        round=task.round,
    )


def toy_devices(suspension: float = 0.0, seed: int = 0, hangs: Hangs = "lose") -> DeviceModel:
    paces = [0.03, 0.05, 0.11, 0.4]
    return DeviceModel(
        {name: Device(pace, 10 * pace) for name, pace in zip(NAMES, paces, strict=True)},
        seed=seed,
        suspension=suspension,
        hangs=hangs,
        bytes_per_second=1e4,
    )


def toy_initial() -> Vector:
    return np.zeros(SIZE, dtype=np.float32)


def failing_for(name: str, error: BaseException) -> Callable[[TrainTask], ClientUpdate]:
    def train(task: TrainTask) -> ClientUpdate:
        if task.client_id == name:
            raise error
        return toy_train(task)

    return train
