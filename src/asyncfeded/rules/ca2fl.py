"""CA²FL: a buffer of updates, calibrated by what each client sent the last time.

Yujia Wang, Yuanpu Cao, Jingcheng Wu, Ruoyu Chen, Jinghui Chen: Tackling the Data Heterogeneity in
Asynchronous Federated Learning with Cached Update Calibration, ICLR 2024. The server caches the
last update h_i of every client, 0 at first. For every arrival, and for every M of them:

    S ← S + (Δ_i − h_i),      h_i ← Δ_i
    x ← x + η · (h̄ + S / M),      then  h̄ ← (1/n) · Σ h_i  and  S ← 0

h̄ is the mean cache before this buffer. A client that arrives twice in a buffer is calibrated
against its own first update. n is the number of clients in the federation.
"""

from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.persistent import PersistentMap
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work
from asyncfeded.core.vectors import Vector

Vector64 = npt.NDArray[np.float64]


class Caches(TypedDict):
    """The caches h_i with their sum, h̄ before this buffer, S, and how many updates are in S."""

    caches: PersistentMap[Vector]
    sum_of_caches: Vector64
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
            "caches": PersistentMap(),
            "sum_of_caches": zeros,
            "mean_before": zeros,
            "calibrated_sum": zeros,
            "count": 0,
        }

    def on_update(state: Caches, arrival: Arrival) -> Decision[Caches]:
        change = arrival.delta.astype(np.float64)
        if arrival.client_id in state["caches"]:
            change -= state["caches"][arrival.client_id]
        after: Caches = {
            "caches": state["caches"].set(arrival.client_id, arrival.delta.copy()),
            "sum_of_caches": state["sum_of_caches"] + change,
            "mean_before": state["mean_before"],
            "calibrated_sum": state["calibrated_sum"] + change,
            "count": state["count"] + 1,
        }
        if after["count"] < buffer_size:
            return Decision(after, work, weight=1 / buffer_size)
        direction = after["mean_before"] + after["calibrated_sum"] / buffer_size
        after["mean_before"] = after["sum_of_caches"] / arrival.clients
        after["calibrated_sum"] = np.zeros(direction.size)
        after["count"] = 0
        return Decision(
            after,
            work,
            Step(server_lr, direction.astype(np.float32)),
            {"learning_rate": server_lr},
            weight=1 / buffer_size,
        )

    def on_leave(state: Caches, client_id: str) -> Caches:
        cache = state["caches"].get(client_id)
        if cache is None:
            return state
        return {
            **state,
            "caches": state["caches"].without(client_id),
            "sum_of_caches": state["sum_of_caches"] - cache,
        }

    return Rule("ca2fl", work, init, on_update, on_leave=on_leave, reads_base=False)
