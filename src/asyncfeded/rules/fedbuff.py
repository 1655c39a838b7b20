"""FedBuff: asynchronous clients, and a step of the server for every M updates.

John Nguyen, Kshitiz Malik, Hongyuan Zhan, Ashkan Yousefpour, Mike Rabbat, Mani Malek, Dzmitry
Huba: Federated Learning with Buffered Asynchronous Aggregation, 2022, arXiv:2106.06639.

    x_{t+1} = x_t + η · (1/M) · Σ s(τ_i) · Δ_i,      s(τ) = 1 / (1 + τ)^p,  p = 1/2

Δ_i is taken against the version that client i started from, τ_i is its lag in versions, and the
sum is divided by the buffer's size M, so a fresh update weighs 1/M and a stale one less.
"""

from typing import Annotated, Any, TypedDict

import numpy as np
from annotated_types import Ge, Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Arrival, Decision, Rule, Work
from asyncfeded.core.vectors import Vector, Vector64, add_weighted
from asyncfeded.rules.server_optimizer import ServerOptimizer, plain

BufferSize = Annotated[int, Ge(1), "M, how many updates make a step"]
StalenessExponent = Annotated[float, Ge(0), "p of the lag's weight; 0 weighs all lags alike"]


class Buffer(TypedDict):
    """Σ s(τ_i) · Δ_i in float64, in order of arrival, and how many updates are in it."""

    weighted_sum: Vector64
    count: int
    optimizer: Any


@hyperparameters
def fedbuff(
    buffer_size: BufferSize = 10,
    server_lr: Annotated[float, Gt(0), "η, the server's learning rate"] = 1.0,
    staleness_exponent: StalenessExponent = 0.5,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Buffer]:
    """Keep updates until there are M of them, then step along their weighted mean."""
    return buffering("fedbuff", buffer_size, staleness_exponent, initial_epochs, plain(server_lr))


def buffering(
    name: str,
    buffer_size: int,
    staleness_exponent: float,
    initial_epochs: int,
    optimizer: ServerOptimizer,
) -> Rule[Buffer]:
    """Build a rule that hands FedBuff's mean to a server optimizer."""
    work = Work(initial_epochs)

    def new_buffer(size: int, optimizer_state: object) -> Buffer:
        return {"weighted_sum": np.zeros(size), "count": 0, "optimizer": optimizer_state}

    def init(parameters: Vector) -> Buffer:
        return new_buffer(parameters.size, optimizer.init(parameters))

    def on_update(buffer: Buffer, arrival: Arrival) -> Decision[Buffer]:
        weight = (1.0 + arrival.lag) ** -staleness_exponent
        taken_over = optimizer.takes_over * weight / buffer_size
        learning_rate = optimizer.learning_rate * weight / buffer_size
        figures = {"weight": weight, "learning_rate": learning_rate}
        total = add_weighted(buffer["weighted_sum"], weight, arrival.delta)
        count, optimizer_state = buffer["count"] + 1, buffer["optimizer"]
        if count < buffer_size:
            state: Buffer = {"weighted_sum": total, "count": count, "optimizer": optimizer_state}
            return Decision(state, work, None, figures, taken_over)
        mean = piecewise(lambda total: (total / buffer_size).astype(np.float32), total)
        optimizer_state, step = optimizer.step(optimizer_state, mean)
        return Decision(new_buffer(mean.size, optimizer_state), work, step, figures, taken_over)

    return Rule(name, work, init, on_update, reads_base=False)
