"""ACE and ACED: every step along the mean of all clients' last updates.

Xiangyu Chang, Manyi Yao, Srikanth Krishnamurthy, Christian Shelton, Anirban Chakraborty, Ananthram
Swami, Samet Oymak, Amit Roy-Chowdhury: Mitigating Participation Imbalance Bias in Asynchronous
Federated Learning, 2025, arXiv:2511.19066. On every arrival:

    u_i ← Δ_i,      x ← x + η · (1/|A|) · Σ_{j ∈ A} u_j

ACE: A is all clients that have been heard, so that early steps are as long as later ones. ACED:
A is only those whose update is at most τ_algo versions old, counted from the version that it was
trained from. A client that leaves takes its update with it.
"""

from typing import Annotated, TypedDict

import numpy as np
from annotated_types import Ge, Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.persistent import PersistentMap
from asyncfeded.core.piecewise import piecewise
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work
from asyncfeded.core.vectors import Vector
from asyncfeded.rules.client_vectors import (
    ClientVectors,
    no_vectors,
    with_vector,
    without_vector,
)

ServerRate = Annotated[float, Gt(0), "η, the server's learning rate"]


class Updates(TypedDict):
    """The updates u_j of the active clients, and the version that each was trained from.

    The rule counts versions by its own steps. `clients_of` has the clients by version; the updates
    from versions before `oldest` have expired.
    """

    updates: ClientVectors
    version_of: PersistentMap[int]
    clients_of: PersistentMap[PersistentMap[bool]]
    steps: int
    oldest: int


@hyperparameters
def ace(server_lr: ServerRate = 0.3, initial_epochs: InitialEpochs = 10) -> Rule[Updates]:
    """Replace the client's last update, then step along the mean of all clients' last updates."""
    return _mean_of_latest("ace", server_lr, initial_epochs, expires=False, max_age=None)


@hyperparameters
def aced(
    server_lr: ServerRate = 0.3,
    max_age: Annotated[
        int | None, Ge(1), "τ_algo, the largest age in versions; none: the number of clients"
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
            "updates": no_vectors(parameters.size),
            "version_of": PersistentMap(),
            "clients_of": PersistentMap(),
            "steps": 0,
            "oldest": 0,
        }

    def on_update(state: Updates, arrival: Arrival) -> Decision[Updates]:
        version = state["steps"] - arrival.lag
        state = _without(state, arrival.client_id)
        if expires:
            allowed = arrival.clients if max_age is None else max_age
            state = _expired(state, oldest=state["steps"] - allowed)
        if not expires or version >= state["oldest"]:
            state = _with(state, arrival, version)
        active = len(state["updates"]["vectors"])
        if active == 0:
            return Decision(state, work, figures={"active": 0}, weight=0.0)
        mean = piecewise(lambda total: (total / active).astype(np.float32), state["updates"]["sum"])
        return Decision(
            {**state, "steps": state["steps"] + 1},
            work,
            Step(server_lr, mean),
            {"learning_rate": server_lr / active, "active": active},
            weight=min(1.0, server_lr) / active,
        )

    return Rule(name, work, init, on_update, on_leave=_without, reads_base=False)


def _with(state: Updates, arrival: Arrival, version: int) -> Updates:
    """Put an update into the mean."""
    client_id, key = arrival.client_id, str(version)
    others = state["clients_of"].get(key, PersistentMap[bool]())
    return {
        **state,
        "updates": with_vector(state["updates"], client_id, arrival.delta),
        "version_of": state["version_of"].set(client_id, version),
        "clients_of": state["clients_of"].set(key, others.set(client_id, True)),
    }


def _without(state: Updates, client_id: str) -> Updates:
    """Take a client's update out of the mean, if there is one."""
    version = state["version_of"].get(client_id)
    if version is None:
        return state
    key, clients_of = str(version), state["clients_of"]
    others = clients_of[key].without(client_id)
    return {
        **state,
        "updates": without_vector(state["updates"], client_id),
        "version_of": state["version_of"].without(client_id),
        "clients_of": clients_of.set(key, others) if others else clients_of.without(key),
    }


def _expired(state: Updates, oldest: int) -> Updates:
    """Take out the updates that were trained from a version before `oldest`."""
    for version in range(state["oldest"], oldest):
        for client_id in state["clients_of"].get(str(version), ()):
            state = _without(state, client_id)
    return {**state, "oldest": max(state["oldest"], oldest)}
