"""A rule of your own in a file: momentum on the server, v ← β · v + Δ, x ← x + η · v.

Run this file to compare it with FedAsync, or give the rule to the command line:

    asyncfeded run --task synthetic-1-1 --rule examples/server_momentum.py:momentum --beta 0.8
"""

from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Lt

from asyncfeded import Decision, Rule, Step, Work, federate, hyperparameters, rules


@hyperparameters
def momentum(
    beta: Annotated[float, Ge(0), Lt(1), "β, how much of the velocity is kept"] = 0.5,
    server_lr: Annotated[float, Gt(0), "η, the server's learning rate"] = 0.3,
):
    """Keep a velocity of updates, and step along it."""

    def init(parameters):
        return {"velocity": np.zeros_like(parameters)}

    def on_update(state, arrival):
        velocity = beta * state["velocity"] + arrival.delta
        return Decision({"velocity": velocity}, arrival.work, Step(server_lr, velocity))

    return Rule("momentum", Work(epochs=5), init, on_update)


def main():
    """Train the same model on the same data with both rules."""
    import torch

    torch.manual_seed(0)
    inputs = [torch.randn(300, 20) + index / 5 for index in range(6)]
    datasets = [(x, x[:, :3].argmax(dim=1)) for x in inputs]
    for rule in (rules.fedasync(alpha=0.3, initial_epochs=5), momentum(beta=0.5)):
        torch.manual_seed(1)
        model = torch.nn.Linear(20, 3)
        result = federate(model, datasets, rule=rule, seconds=5, evaluate_every=1)
        print(f"{rule.name:17}", *[f"{value:.2f}" for value in result.metric("accuracy")])


if __name__ == "__main__":
    main()
