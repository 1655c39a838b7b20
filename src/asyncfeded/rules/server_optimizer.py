"""Server optimizers: what the server does with the mean of the clients' updates.

Sashank Reddi, Zachary Charles, Manzil Zaheer, Zachary Garrett, Keith Rush, Jakub Konečný, Sanjiv
Kumar, Brendan McMahan: Adaptive Federated Optimization, 2021, arXiv:2003.00295, Algorithm 2. With
the mean update Δ̄ and v₀ = τ²:

    m ← β₁ · m + (1 − β₁) · Δ̄
    v ← v + Δ̄²                                  Adagrad
    v ← β₂ · v + (1 − β₂) · Δ̄²                  Adam
    v ← v − (1 − β₂) · Δ̄² · sign(v − Δ̄²)        Yogi
    x ← x + η · m / (√v + τ)

As in the paper, moments are not corrected for their start. Momentum is that of

Tzu-Ming Harry Hsu, Hang Qi, Matthew Brown: Measuring the Effects of Non-Identical Data
Distribution for Federated Visual Classification, 2019, arXiv:1909.06335.

    m ← β · m + Δ̄,      x ← x + η · m

A rule that makes one mean of several updates takes an optimizer as an argument.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import numpy as np

from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Step, no_state
from asyncfeded.core.vectors import Vector, Vector64

SecondMoment = Callable[[Vector64, Vector64], Vector64]
"""The next v from v and Δ̄². In float64, whose range holds the square of every float32."""


class Moments(TypedDict):
    """The first and the second moment of the mean updates."""

    m: Vector
    v: Vector64


class ServerOptimizer(NamedTuple):
    """`init` makes the first state; `step` turns a mean update into the next state and a step.

    `takes_over` is the share of the mean update that one step of FedBuff takes over; its clients'
    statistics get the same share. It is 1 for steps that do not lie on the way to the mean.
    """

    learning_rate: float
    init: Callable[[Vector], Any]
    step: Callable[[Any, Vector], tuple[Any, Step]]
    takes_over: float = 1.0


def plain(learning_rate: float = 1.0) -> ServerOptimizer:
    """Add the mean: x ← x + η · Δ̄."""
    return ServerOptimizer(
        learning_rate,
        no_state,
        lambda _, mean: (None, Step(learning_rate, mean)),
        takes_over=min(1.0, learning_rate),
    )


def momentum(learning_rate: float, beta: float) -> ServerOptimizer:
    """Momentum: m ← β · m + Δ̄, x ← x + η · m."""

    def step(before: Vector, mean: Vector) -> tuple[Vector, Step]:
        moment = piecewise(lambda m, mean: beta * m + mean, before, mean)
        return moment, Step(learning_rate, moment)

    return ServerOptimizer(learning_rate, np.zeros_like, step)


def adagrad(learning_rate: float, beta1: float, adaptivity: float) -> ServerOptimizer:
    """Adagrad: v ← v + Δ̄²."""
    return _adaptive(learning_rate, beta1, adaptivity, lambda v, squares: v + squares)


def adam(learning_rate: float, beta1: float, beta2: float, adaptivity: float) -> ServerOptimizer:
    """Adam: v ← β₂ · v + (1 − β₂) · Δ̄²."""
    return _adaptive(
        learning_rate, beta1, adaptivity, lambda v, squares: beta2 * v + (1.0 - beta2) * squares
    )


def yogi(learning_rate: float, beta1: float, beta2: float, adaptivity: float) -> ServerOptimizer:
    """Yogi: v ← v − (1 − β₂) · Δ̄² · sign(v − Δ̄²)."""
    return _adaptive(
        learning_rate,
        beta1,
        adaptivity,
        lambda v, squares: v - (1.0 - beta2) * squares * np.sign(v - squares),
    )


def _adaptive(
    learning_rate: float, beta1: float, adaptivity: float, second_moment: SecondMoment
) -> ServerOptimizer:
    def init(parameters: Vector) -> Moments:
        return {"m": np.zeros_like(parameters), "v": np.full(parameters.size, adaptivity**2)}

    def elements(m: Vector, v: Vector64, mean: Vector) -> tuple[Vector, Vector64, Vector]:
        m = beta1 * m + (1.0 - beta1) * mean
        v = second_moment(v, np.square(mean, dtype=np.float64))
        return m, v, (m / (np.sqrt(v) + adaptivity)).astype(np.float32)

    def step(before: Moments, mean: Vector) -> tuple[Moments, Step]:
        m, v, direction = piecewise(elements, before["m"], before["v"], mean)
        return {"m": m, "v": v}, Step(learning_rate, direction)

    return ServerOptimizer(learning_rate, init, step)
