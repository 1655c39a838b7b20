"""FedAvg: a synchronous mean of the clients' models, weighted by their numbers of examples.

Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera y Arcas:
Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017, arXiv:1602.05629.

    x_{t+1} = Σ n_i · x_i / Σ n_i = x_t + Σ n_i · Δ_i / Σ n_i

Everybody in a round starts from x_t, so the mean of the models is the mean of the deltas.
"""

from typing import Any, TypedDict

import numpy as np

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Arrival, Decision, RoundEnd, Rule, Work
from asyncfeded.core.vectors import Vector, Vector64, add_weighted
from asyncfeded.rules.server_optimizer import ServerOptimizer, plain


class Round(TypedDict):
    """What has been reported so far: Σ n_i · Δ_i in float64, in order of arrival, and Σ n_i."""

    weighted_sum: Vector64
    examples: int
    optimizer: Any


@hyperparameters
def fedavg(initial_epochs: InitialEpochs = 10) -> Rule[Round]:
    """Wait for everybody, then average."""
    return averaging("fedavg", initial_epochs)


def averaging(
    name: str,
    initial_epochs: int,
    optimizer: ServerOptimizer | None = None,
    proximal_mu: float = 0.0,
) -> Rule[Round]:
    """Build a rule that hands FedAvg's mean to a server optimizer.

    Clients train with this proximal term. The mean of their statistics replaces the server's.
    """
    optimizer = plain() if optimizer is None else optimizer
    work = Work(initial_epochs, proximal_mu)

    def new_round(size: int, optimizer_state: object) -> Round:
        return {"weighted_sum": np.zeros(size), "examples": 0, "optimizer": optimizer_state}

    def init(parameters: Vector) -> Round:
        return new_round(parameters.size, optimizer.init(parameters))

    def on_update(so_far: Round, arrival: Arrival) -> Decision[Round]:
        examples = arrival.num_examples
        state: Round = {
            "weighted_sum": add_weighted(so_far["weighted_sum"], examples, arrival.delta),
            "examples": so_far["examples"] + examples,
            "optimizer": so_far["optimizer"],
        }
        return Decision(state, work, weight=examples)

    def on_round_end(reported: Round) -> RoundEnd[Round]:
        if reported["examples"] == 0:
            return RoundEnd(reported, step=None)
        examples = reported["examples"]
        mean = piecewise(
            lambda total: (total / examples).astype(np.float32), reported["weighted_sum"]
        )
        optimizer_state, step = optimizer.step(reported["optimizer"], mean)
        return RoundEnd(new_round(mean.size, optimizer_state), step)

    return Rule(name, work, init, on_update, on_round_end, reads_base=False)
