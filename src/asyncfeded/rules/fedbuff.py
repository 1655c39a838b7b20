"""FedBuff: asynchronous clients, and a step of the server for every M updates.

John Nguyen, Kshitiz Malik, Hongyuan Zhan, Ashkan Yousefpour, Mike Rabbat, Mani Malek, Dzmitry
Huba: Federated Learning with Buffered Asynchronous Aggregation, 2022, arXiv:2106.06639.

    x_{t+1} = x_t + η · (1/M) · Σ s(τ_i) · Δ_i,      s(τ) = 1 / (1 + τ)^p,  p = 1/2

Δ_i is taken against the version that client i started from, τ_i is its lag in versions, and the
sum is divided by the buffer's size M, so a fresh update weighs 1/M and a stale one less.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Annotated

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import require
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work


@dataclass(frozen=True, slots=True)
class Buffer:
    """Σ s(τ_i) · Δ_i in float64, in order of arrival, and how many updates are in it."""

    weighted_sum: npt.NDArray[np.float64] | None = None
    count: int = 0


def fedbuff(
    buffer_size: Annotated[int, "M, how many updates make a step; at least 1"] = 10,
    server_lr: Annotated[float, "η, the server's learning rate; above 0"] = 1.0,
    staleness_exponent: Annotated[float, "p of the lag's weight; 0 for none"] = 0.5,
    initial_epochs: Annotated[int, "K of the first round; at least 1"] = 10,
) -> Rule[Buffer]:
    """Keep updates until there are M of them, then step along their weighted mean."""
    require(buffer_size >= 1, "buffer_size", "at least 1", buffer_size)
    require(isfinite(server_lr) and server_lr > 0, "server_lr", "above 0", server_lr)
    require(
        isfinite(staleness_exponent) and staleness_exponent >= 0,
        "staleness_exponent",
        "at least 0",
        staleness_exponent,
    )
    require(initial_epochs >= 1, "initial_epochs", "at least 1", initial_epochs)
    work = Work(initial_epochs)

    def on_update(buffer: Buffer, arrival: Arrival) -> Decision[Buffer]:
        weight = (1.0 + arrival.lag) ** -staleness_exponent
        figures = {"weight": weight, "learning_rate": server_lr * weight / buffer_size}
        total = arrival.delta.astype(np.float64) * weight
        if buffer.weighted_sum is not None:
            total += buffer.weighted_sum
        count = buffer.count + 1
        if count < buffer_size:
            return Decision(Buffer(total, count), work, step=None, figures=figures)
        mean = (total / buffer_size).astype(np.float32)
        return Decision(Buffer(), work, Step(server_lr, mean), figures)

    return Rule(
        name="fedbuff",
        settings={
            "buffer_size": buffer_size,
            "server_lr": server_lr,
            "staleness_exponent": staleness_exponent,
            "initial_epochs": initial_epochs,
        },
        first_work=work,
        initial_state=Buffer(),
        on_update=on_update,
        reads_base=False,
    )
