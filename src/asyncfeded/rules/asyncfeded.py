"""AsyncFedED: staleness as a Euclidean distance, and local epochs that follow it.

Qiyuan Wang, Qianqian Yang, Shibo He, Zhiguo Shi, Jiming Chen: AsyncFedED: Asynchronous Federated
Learning with Euclidean Distance based Adaptive Weight Aggregation, 2022, arXiv:2205.13797.

    x_{t+1} = x_t + η · Δ                      Eq. 5
    γ       = ‖x_t − x_base‖ / ‖Δ‖             Eq. 6, staleness
    η       = λ / (γ + ε)                      Eq. 7, at most λ / ε
    K_next  = K + floor((γ̄ − γ) · κ)           Eq. 8, here never below 1
"""

from math import floor
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from asyncfeded.core.errors import require
from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work, no_state


@hyperparameters
def asyncfeded(
    lam: Annotated[float, Gt(0), "λ, the scale of the server's learning rate"] = 5.0,
    eps: Annotated[float, Gt(0), "ε, the offset of the staleness"] = 5.0,
    gamma_bar: Annotated[float, Ge(0), Le(1e6), "γ̄, the staleness that K steers towards"] = 3.0,
    kappa: Annotated[float, Ge(0), Le(1e6), "κ, how fast K follows; 0 keeps K constant"] = 1.0,
    initial_epochs: InitialEpochs = 10,
    rounding: Annotated[
        Literal["floor", "carry"], "floor is Eq. 8 as printed; carry keeps K's fraction"
    ] = "floor",
    max_epochs: Annotated[int | None, "an upper bound on K; none by default"] = None,
    power: Annotated[float, Gt(0), Le(3), "exponent of the ratio in Eq. 6; 1 as printed"] = 1.0,
) -> Rule[None]:
    """Fold in every update at once, with less weight the staler it is; steer each client's K.

    With `rounding="carry"` K is a real number that adds up (γ̄ − γ)·κ, and clients run its floor.
    As printed, Eq. 8 never raises K while γ̄ · κ < 1. `power=2` compares squared distances.
    """
    require(
        max_epochs is None or max_epochs >= initial_epochs,
        "max_epochs",
        f"at least initial_epochs = {initial_epochs}, or none",
        max_epochs,
    )

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        staleness = (arrival.distance / arrival.delta_norm) ** power  # Eq. 6
        learning_rate = lam / (staleness + eps)  # Eq. 7
        change = (gamma_bar - staleness) * kappa  # Eq. 8
        epochs = arrival.work.epochs + (floor(change) if rounding == "floor" else change)
        epochs = max(1, epochs if max_epochs is None else min(epochs, max_epochs))
        return Decision(
            state=None,
            work=Work(epochs),
            step=Step(learning_rate, arrival.delta),  # Eq. 5
            figures={"staleness": staleness, "learning_rate": learning_rate},
        )

    return Rule("asyncfeded", Work(initial_epochs), no_state, on_update, reads_base=False)
