"""ACE and ACED: every step along the mean of all clients' last updates.

Xiangyu Chang, Manyi Yao, Srikanth Krishnamurthy, Christian Shelton, Anirban Chakraborty, Ananthram
Swami, Samet Oymak, Amit Roy-Chowdhury: Mitigating Participation Imbalance Bias in Asynchronous
Federated Learning, 2025, arXiv:2511.19066. On every arrival:

    u_i ← Δ_i,      x ← x + η · (1/|A|) · Σ_{j ∈ A} u_j

ACE: A is all clients that have been heard, so that early steps are as long as later ones. ACED:
A is those of them whose update was trained from one of the last τ_algo versions. A client that
leaves takes its update with it.
"""

from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.persistent import PersistentMap
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work
from asyncfeded.core.vectors import Vector

ServerRate = Annotated[float, Gt(0), "η, the server's learning rate"]


class Updates(TypedDict):
    """The active updates u_j, their sum, and when each expires.

    `base_of` is the step that a client's update was trained from and `clients_of` the clients of
    such a step. `steps` counts the server's steps; bases before `oldest` have expired.
    """

    updates: PersistentMap[Vector]
    sum: npt.NDArray[np.float64]
    base_of: PersistentMap[int]
    clients_of: PersistentMap[PersistentMap[bool]]
    steps: int
    oldest: int


@hyperparameters
def ace(server_lr: ServerRate = 1.0, initial_epochs: InitialEpochs = 10) -> Rule[Updates]:
    """Replace the client's last update, then step along the mean of all clients' last updates."""
    return _mean_of_latest("ace", server_lr, initial_epochs, expires=False, max_age=None)


@hyperparameters
def aced(
    server_lr: ServerRate = 1.0,
    max_age: Annotated[
        int | None, Ge(1), "τ_algo, how many versions old an update may be; none: one per client"
    ] = None,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Updates]:
    """Step along the mean of all clients' last updates that are not too old."""
    return _mean_of_latest("aced", server_lr, initial_epochs, expires=True, max_age=max_age)


def _mean_of_latest(
    name: str, server_lr: float, initial_epochs: int, expires: bool, max_age: int | None
) -> Rule[Updates]:
    work = Work(initial_epochs)

    def init(parameters: Vector) -> Updates:
        return {
            "updates": PersistentMap(),
            "sum": np.zeros(parameters.size),
            "base_of": PersistentMap(),
            "clients_of": PersistentMap(),
            "steps": 0,
            "oldest": 0,
        }

    def on_update(state: Updates, arrival: Arrival) -> Decision[Updates]:
        base = state["steps"] - arrival.lag
        state = _without(state, arrival.client_id)
        clients = state["clients_of"].get(str(base), PersistentMap[bool]())
        state = {
            "updates": state["updates"].set(arrival.client_id, arrival.delta.copy()),
            "sum": state["sum"] + arrival.delta,
            "base_of": state["base_of"].set(arrival.client_id, base),
            "clients_of": state["clients_of"].set(str(base), clients.set(arrival.client_id, True)),
            "steps": state["steps"] + 1,
            "oldest": min(state["oldest"], base),
        }
        if expires:
            newest = state["steps"] - 1
            state = _expired(state, newest - (arrival.clients if max_age is None else max_age))
        active = len(state["updates"])
        if active == 0:  # the arriving update itself is too old
            return Decision(state, work, figures={"active": 0}, weight=0.0)
        mean = (state["sum"] / active).astype(np.float32)
        return Decision(
            state,
            work,
            Step(server_lr, mean),
            {"learning_rate": server_lr / active, "active": active},
            weight=min(1.0, server_lr) / active,
        )

    return Rule(name, work, init, on_update, on_leave=_without, reads_base=False)


def _without(state: Updates, client_id: str) -> Updates:
    """Take a client's update out of the mean."""
    update = state["updates"].get(client_id)
    if update is None:
        return state
    base = str(state["base_of"][client_id])
    others = state["clients_of"][base].without(client_id)
    clients_of = state["clients_of"]
    return {
        **state,
        "updates": state["updates"].without(client_id),
        "sum": state["sum"] - update,
        "base_of": state["base_of"].without(client_id),
        "clients_of": clients_of.set(base, others) if others else clients_of.without(base),
    }


def _expired(state: Updates, oldest: int) -> Updates:
    """Take out the updates that were trained from a step before `oldest`."""
    for base in range(state["oldest"], oldest):
        for client_id in list(state["clients_of"].get(str(base), ())):
            state = _without(state, client_id)
    return {**state, "oldest": max(state["oldest"], oldest)}
