"""Delay-adaptive asynchronous SGD: updates later than usual weigh less.

Konstantin Mishchenko, Francis Bach, Mathieu Even, Blake Woodworth: Asynchronous SGD Beats Minibatch
SGD Under Arbitrary Delays, 2022, arXiv:2206.07638. Anastasia Koloskova, Sebastian Stich, Martin
Jaggi: Sharper Convergence Guarantees for Asynchronous SGD for Distributed and Federated Learning,
2022, arXiv:2206.08307.

    x_{t+1} = x_t + η · C / max(C, τ) · Δ

C is the number of clients at work, which is the mean lag of asynchronous training, and τ the lag
of this update in versions.
"""

from typing import Annotated

from annotated_types import Gt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work, no_state


@hyperparameters
def delay_adaptive(
    server_lr: Annotated[float, Gt(0), "η, the server's learning rate"] = 0.3,
    initial_epochs: InitialEpochs = 10,
) -> Rule[None]:
    """Add every update at once, scaled down if its lag exceeds the number of clients at work."""
    work = Work(initial_epochs)

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        concurrency = arrival.clients_at_work
        learning_rate = server_lr * concurrency / max(concurrency, arrival.lag)
        step = Step(learning_rate, arrival.delta)
        return Decision(None, work, step, {"learning_rate": learning_rate})

    return Rule("delay-adaptive", work, no_state, on_update, reads_base=False)
