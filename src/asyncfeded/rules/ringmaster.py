"""Ringmaster ASGD: add updates that are fresh enough, discard the others.

Artavazd Maranjyan, Alexander Tyurin, Peter Richtárik: Ringmaster ASGD: The First Asynchronous SGD
with Optimal Time Complexity, 2025, arXiv:2501.16168.

    x_{t+1} = x_t + η · Δ      if τ < R;      otherwise x_t stays, and the client begins anew

The paper assumes that all clients draw from the same data. Where they do not, as in federated
learning, the data of slow clients are lost to the model: the rule is here to compare with.
"""

from typing import Annotated

from annotated_types import Ge, Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work, no_state


@hyperparameters
def ringmaster(
    discard_from: Annotated[
        int, Ge(1), "R, the lag in versions from which an update is discarded"
    ] = 5,
    server_lr: Annotated[float, Gt(0), "η, the server's learning rate"] = 0.3,
    initial_epochs: InitialEpochs = 10,
) -> Rule[None]:
    """Add an update at once if its lag is below R, and discard it otherwise."""
    work = Work(initial_epochs)

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        if arrival.lag >= discard_from:
            return Decision(None, work, figures={"learning_rate": 0.0}, weight=0.0)
        step = Step(server_lr, arrival.delta)
        return Decision(None, work, step, {"learning_rate": server_lr})

    return Rule("ringmaster", work, no_state, on_update, reads_base=False)
