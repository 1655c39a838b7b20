"""AsyncFedED and FedBuff in the plainest way: every version is kept, and nothing is shared."""

from math import floor, inf, sqrt

import numpy as np
import numpy.typing as npt

from asyncfeded.core.messages import ClientUpdate
from asyncfeded.core.vectors import Vector

Vector64 = npt.NDArray[np.float64]

LAM, EPS, GAMMA_BAR, KAPPA, EPOCHS, BUFFER = 5.0, 5.0, 3.0, 1.0, 3, 2


class NaiveServer:
    """What a server must do, without memory to save, statistics, files or errors."""

    def __init__(self, size: int, buffers: bool) -> None:
        self.buffers = buffers
        self.models = [np.zeros(size, np.float32)]
        self.epochs: dict[str, int] = {}
        self.rounds: dict[str, int] = {}
        self.tasks: dict[str, tuple[int, int]] = {}  # version and round of those who take part
        self.taken: dict[str, tuple[int, float]] = {}  # version and norm of the last update
        self.kept = np.zeros(size)
        self.in_buffer = 0

    def next_task(self, name: str) -> None:
        self.rounds[name] = self.rounds.get(name, -1) + 1
        self.tasks[name] = len(self.models), self.rounds[name]

    def receive(self, update: ClientUpdate) -> str | None:
        """Why an update is refused; None if it is taken."""
        name, delta = update.client_id, update.delta.astype(np.float64)
        if name not in self.tasks:
            return "unknown_client"
        base, number = self.tasks[name]
        last_base, last_norm = self.taken.get(name, (None, None))
        if update.round is None and last_base == update.version != base:
            return "duplicate"
        if update.round is not None and 0 <= update.round < number:
            return "duplicate"
        if update.version != base or update.round not in (None, number):
            return "version_not_held"
        reason, norm = None, sqrt(sum(delta * delta))
        if delta.size != self.models[0].size:
            reason = "wrong_length"
        elif update.num_examples < 1:
            reason = "out_of_range"
        elif update.round is None and (last_base, last_norm) == (base, norm):
            return "duplicate"
        elif not 0 < norm < inf:
            reason = "zero_delta" if norm == 0 else "not_finite"
        else:
            self.taken[name] = base, norm
            (self._buffer if self.buffers else self._fold_in)(name, base, delta, norm)
        self.next_task(name)
        return reason

    def _fold_in(self, name: str, base: int, delta: Vector64, norm: float) -> None:
        apart = (self.models[-1] - self.models[base - 1]).astype(np.float64)
        gamma = sqrt(sum(apart * apart)) / norm
        self.epochs[name] = max(
            1, self.epochs.get(name, EPOCHS) + floor((GAMMA_BAR - gamma) * KAPPA)
        )
        self._step(LAM / (gamma + EPS), delta.astype(np.float32))

    def _buffer(self, _: str, base: int, delta: Vector64, norm: float) -> None:
        self.kept = self.kept + delta * (1.0 + len(self.models) - base) ** -0.5
        self.in_buffer += 1
        if self.in_buffer == BUFFER:
            self._step(1.0, (self.kept / BUFFER).astype(np.float32))
            self.kept, self.in_buffer = np.zeros(delta.size), 0

    def _step(self, scale: float, direction: Vector) -> None:
        self.models.append(self.models[-1] + np.float32(scale) * direction)
