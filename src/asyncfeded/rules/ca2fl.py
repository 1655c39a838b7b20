"""CA²FL: a buffer of updates, calibrated by what each client sent the last time.

Yujia Wang, Yuanpu Cao, Jingcheng Wu, Ruoyu Chen, Jinghui Chen: Tackling the Data Heterogeneity in
Asynchronous Federated Learning with Cached Update Calibration, ICLR 2024. The server caches the
last update h_i of every client, 0 at first. For every arrival, and for every M of them:

    S ← S + (Δ_i − h_i),      h_i ← Δ_i
    x ← x + η · (h̄ + S / M),      then  h̄ ← (1/n) · Σ h_i  and  S ← 0

h̄ is the mean cache before this buffer. A client that arrives twice in a buffer is calibrated
against its own first update. n is the number of clients in the federation. The cache of a client
that leaves goes with it, and is missing from the next h̄.
"""

from typing import Annotated, TypedDict

import numpy as np
from annotated_types import Ge, Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work
from asyncfeded.core.vectors import Vector, Vector64
from asyncfeded.rules.client_vectors import (
    ClientVectors,
    no_vectors,
    replaced,
    with_vector,
    without_vector,
)


class Caches(TypedDict):
    """The caches h_i, h̄ before this buffer, S, and how many updates are in S."""

    caches: ClientVectors
    mean_before: Vector64
    calibrated_sum: Vector64
    count: int


@hyperparameters
def ca2fl(
    buffer_size: Annotated[int, Ge(1), "M, how many updates make a step"] = 10,
    server_lr: Annotated[float, Gt(0), "η, the server's learning rate"] = 1.0,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Caches]:
    """Step for every M updates along all clients' last updates, of which M are fresh."""
    work = Work(initial_epochs)

    def init(parameters: Vector) -> Caches:
        zeros = np.zeros(parameters.size)
        return {
            "caches": no_vectors(parameters.size),
            "mean_before": zeros,
            "calibrated_sum": zeros,
            "count": 0,
        }

    def on_update(state: Caches, arrival: Arrival) -> Decision[Caches]:
        cache = state["caches"]["vectors"].get(arrival.client_id)
        calibrated_sum = replaced(state["calibrated_sum"], cache, arrival.delta)
        caches = with_vector(state["caches"], arrival.client_id, arrival.delta)
        count = state["count"] + 1
        if count < buffer_size:
            kept: Caches = {
                "caches": caches,
                "mean_before": state["mean_before"],
                "calibrated_sum": calibrated_sum,
                "count": count,
            }
            return Decision(kept, work, weight=1 / buffer_size)
        direction = piecewise(
            lambda mean, total: (mean + total / buffer_size).astype(np.float32),
            state["mean_before"],
            calibrated_sum,
        )
        after: Caches = {
            "caches": caches,
            "mean_before": piecewise(lambda total: total / arrival.clients, caches["sum"]),
            "calibrated_sum": np.zeros(direction.size),
            "count": 0,
        }
        return Decision(
            after,
            work,
            Step(server_lr, direction),
            {"learning_rate": server_lr},
            weight=1 / buffer_size,
        )

    def on_leave(state: Caches, client_id: str) -> Caches:
        return {**state, "caches": without_vector(state["caches"], client_id)}

    return Rule("ca2fl", work, init, on_update, on_leave=on_leave, reads_base=False)
