"""FADAS: a buffer of updates, AMSGrad on the server, and a step that shrinks with the delay.

Yujia Wang, Shiqiang Wang, Songtao Lu, Jinghui Chen: FADAS: Towards Federated Adaptive Asynchronous
Optimization, 2024, arXiv:2407.18365. With the mean Δ̄ of M updates, and their largest lag τ_max:

    m ← β₁ · m + (1 − β₁) · Δ̄
    v ← β₂ · v + (1 − β₂) · Δ̄²
    v̂ ← max(v̂, v)
    x ← x + η_t · m / (√v̂ + ε)

    η_t = η                                      plain
    η_t = η if τ_max ≤ τ_c, else η / τ_max       delay-adaptive
"""

from typing import Annotated, TypedDict

import numpy as np
from annotated_types import Ge, Gt, Le

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work
from asyncfeded.core.vectors import Vector, Vector64, add_weighted
from asyncfeded.rules.fedbuff import BufferSize
from asyncfeded.rules.fedopt import Beta1, Beta2, Rate

Epsilon = Annotated[float, Gt(0), Le(1e6), "ε, added to the root of the second moment"]


class BufferedMoments(TypedDict):
    """The buffer (sum, count and largest lag of its updates) and the moments m, v and v̂."""

    sum: Vector64
    count: int
    largest_lag: int
    m: Vector
    v: Vector64
    v_max: Vector64


@hyperparameters
def fadas(
    buffer_size: BufferSize = 5,
    server_lr: Rate = 1e-4,
    beta1: Beta1 = 0.9,
    beta2: Beta2 = 0.99,
    epsilon: Epsilon = 1e-8,
    initial_epochs: InitialEpochs = 10,
) -> Rule[BufferedMoments]:
    """Step by AMSGrad for every M updates, with the same learning rate however late they are."""
    return _amsgrad("fadas", buffer_size, server_lr, beta1, beta2, epsilon, None, initial_epochs)


@hyperparameters
def fadas_adaptive(
    buffer_size: BufferSize = 5,
    server_lr: Rate = 1e-3,
    beta1: Beta1 = 0.9,
    beta2: Beta2 = 0.99,
    epsilon: Epsilon = 1e-8,
    max_lag: Annotated[int, Ge(1), "τ_c, the lag up to which the step does not shrink"] = 1,
    initial_epochs: InitialEpochs = 10,
) -> Rule[BufferedMoments]:
    """Step by AMSGrad for every M updates, with a smaller step if the largest lag is large."""
    return _amsgrad(
        "fadas-adaptive", buffer_size, server_lr, beta1, beta2, epsilon, max_lag, initial_epochs
    )


def _amsgrad(
    name: str,
    buffer_size: int,
    server_lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    max_lag: int | None,
    initial_epochs: int,
) -> Rule[BufferedMoments]:
    work = Work(initial_epochs)

    def init(parameters: Vector) -> BufferedMoments:
        m, zeros = np.zeros_like(parameters), np.zeros(parameters.size)
        return {"sum": zeros, "count": 0, "largest_lag": 0, "m": m, "v": zeros, "v_max": zeros}

    def elements(
        total: Vector64, m: Vector, v: Vector64, v_max: Vector64
    ) -> tuple[Vector, Vector64, Vector64, Vector]:
        mean = (total / buffer_size).astype(np.float32)
        m = beta1 * m + (1.0 - beta1) * mean
        # In float64, whose range holds the square of every float32.
        v = beta2 * v + (1.0 - beta2) * np.square(mean, dtype=np.float64)
        v_max = np.maximum(v_max, v)
        return m, v, v_max, (m / (np.sqrt(v_max) + epsilon)).astype(np.float32)

    def on_update(state: BufferedMoments, arrival: Arrival) -> Decision[BufferedMoments]:
        total = add_weighted(state["sum"], 1.0, arrival.delta)
        count = state["count"] + 1
        largest_lag = max(state["largest_lag"], arrival.lag)
        if count < buffer_size:
            kept: BufferedMoments = {
                **state,
                "sum": total,
                "count": count,
                "largest_lag": largest_lag,
            }
            return Decision(kept, work, weight=1 / buffer_size)
        m, v, v_max, direction = piecewise(elements, total, state["m"], state["v"], state["v_max"])
        learning_rate = server_lr
        if max_lag is not None and largest_lag > max_lag:
            learning_rate = server_lr / largest_lag
        after: BufferedMoments = {**init(direction), "m": m, "v": v, "v_max": v_max}
        return Decision(
            after,
            work,
            Step(learning_rate, direction),
            {"learning_rate": learning_rate},
            weight=1 / buffer_size,
        )

    return Rule(name, work, init, on_update, reads_base=False)
