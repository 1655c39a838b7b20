"""FedNova: a synchronous mean in which clients that train longer do not count for more.

Jianyu Wang, Qinghua Liu, Hao Liang, Gauri Joshi, Vincent Poor: Tackling the Objective Inconsistency
Problem in Heterogeneous Federated Optimization, 2020, arXiv:2007.07481. With p_i = n_i / Σ n_j:

    x_{t+1} = x_t + (Σ p_i · a_i) · (Σ p_i · Δ_i / a_i)

a_i is the weight of client i's gradients in its own update: its number τ_i of mini-batches for
plain SGD and, for SGD with momentum ρ that starts from zero in each round,

    a_i = (τ_i − ρ · (1 − ρ^τ_i) / (1 − ρ)) / (1 − ρ)

Clients report τ_i with their updates. If a client does not, K stands for its τ_i.
"""

from typing import Annotated, TypedDict

import numpy as np
from annotated_types import Ge, Le

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Arrival, Decision, RoundEnd, Rule, Step, Work
from asyncfeded.core.vectors import Vector, Vector64, add_weighted


class NormalizedRound(TypedDict):
    """Σ n_i · Δ_i / a_i in float64, in order of arrival, Σ n_i · a_i and Σ n_i."""

    normalized_sum: Vector64
    weighted_length: float
    examples: int


@hyperparameters
def fednova(
    client_momentum: Annotated[
        float, Ge(0), Le(0.99), "ρ, the momentum that clients train with"
    ] = 0.5,
    initial_epochs: InitialEpochs = 10,
) -> Rule[NormalizedRound]:
    """Wait for everybody, then average the updates per local step."""
    work = Work(initial_epochs)

    def length(steps: int) -> float:
        rho = client_momentum
        return (steps - rho * (1.0 - rho**steps) / (1.0 - rho)) / (1.0 - rho)

    def new_round(size: int) -> NormalizedRound:
        return {"normalized_sum": np.zeros(size), "weighted_length": 0.0, "examples": 0}

    def init(parameters: Vector) -> NormalizedRound:
        return new_round(parameters.size)

    def on_update(so_far: NormalizedRound, arrival: Arrival) -> Decision[NormalizedRound]:
        examples, a = arrival.num_examples, length(arrival.steps)
        state: NormalizedRound = {
            "normalized_sum": add_weighted(so_far["normalized_sum"], examples / a, arrival.delta),
            "weighted_length": so_far["weighted_length"] + examples * a,
            "examples": so_far["examples"] + examples,
        }
        return Decision(state, work, figures={"local_steps": arrival.steps}, weight=examples)

    def on_round_end(reported: NormalizedRound) -> RoundEnd[NormalizedRound]:
        examples = reported["examples"]
        if examples == 0:
            return RoundEnd(reported, step=None)
        effective_length = reported["weighted_length"] / examples
        mean = piecewise(
            lambda total: (total / examples).astype(np.float32), reported["normalized_sum"]
        )
        return RoundEnd(new_round(mean.size), Step(effective_length, mean))

    return Rule("fednova", work, init, on_update, on_round_end, reads_base=False)
