"""AsyncFedED on a virtual clock, written once more in the plainest way.

One loop, no heap, no look-ahead, every version stored: what the engine must agree with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import numpy as np

from asyncfeded import TrainTask
from asyncfeded.core.messages import Train
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.devices import Devices


@dataclass
class Client:
    name: str
    version: int
    epochs: int
    round: int
    arrives: float
    lost: bool
    since: int


def simulate(
    initial: Vector,
    train: Train,
    devices: Devices,
    names: Sequence[str],
    seconds: float,
    lam: float,
    eps: float,
    gamma_bar: float,
    kappa: float,
) -> list[Vector]:
    """Every version of the model, the first one first."""
    versions = [initial]
    sent = 0

    def send(name: str, epochs: int, number: int, now: float) -> Client:
        nonlocal sent
        sent += 1
        time = devices.round_time(name, number, epochs, initial.nbytes, now)
        arrives = now + time.total
        return Client(name, len(versions), epochs, number, arrives, time.lost, sent)

    clients = [send(name, 10, 0, 0.0) for name in names]
    while True:
        client = min(clients, key=lambda one: (one.arrives, one.since))
        if client.arrives > seconds:
            return versions
        clients.remove(client)
        if client.lost:
            clients.append(send(client.name, client.epochs, client.round + 1, client.arrives))
            continue
        base, current = versions[client.version - 1], versions[-1]
        task = TrainTask(client.name, client.version, base, client.epochs, client.round)
        delta = train(task).delta
        apart = (current - base).astype(np.float64)
        gamma = np.sqrt(np.sum(apart**2)) / np.sqrt(np.sum(delta.astype(np.float64) ** 2))
        versions.append(current + np.float32(lam / (gamma + eps)) * delta)
        epochs = max(1, client.epochs + floor((gamma_bar - gamma) * kappa))
        clients.append(send(client.name, epochs, client.round + 1, client.arrives))
