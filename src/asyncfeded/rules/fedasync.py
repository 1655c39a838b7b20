"""FedAsync: a mean of the server's model and the client's, weighted by the client's lag.

Cong Xie, Sanmi Koyejo, Indranil Gupta: Asynchronous Federated Optimization, 2019,
arXiv:1903.03934.

    x_{t+1} = (1 − α_t) · x_t + α_t · x_client,      α_t = α · s(t − τ)

    constant      s = 1
    hinge         s = 1 if t − τ ≤ b, else 1 / (a · (t − τ − b) + 1)
    polynomial    s = (t − τ + 1)^(−a)

t − τ is the lag in versions. The appendix of the AsyncFedED paper words it as the time between
download and receipt: `lag_in="seconds"` measures the hinge's lag in this way. α itself never
changes: it does not compound from update to update.
"""

from collections.abc import Callable
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from asyncfeded.core.errors import SettingError
from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.rule import Arrival, Decision, Rule, Work, no_state

Weighting = Literal["constant", "hinge", "polynomial"]
LagIn = Literal["versions", "seconds"]

Alpha = Annotated[float, Gt(0), Le(1), "α, the weight of a fresh client model"]
Slope = Annotated[float, Ge(0), "how steeply the weight falls with the lag"]
Knee = Annotated[float, Ge(0), "the lag up to which hinge keeps the whole weight"]


def fedasync(
    alpha: float = 0.1,
    weighting: Weighting = "constant",
    a: float = 5.0,
    b: float = 5.0,
    initial_epochs: int = 10,
    lag_in: LagIn = "versions",
) -> Rule[None]:
    """Mix every client model in at once, with a weight that falls with its lag."""
    match weighting:
        case "constant":
            return constant(alpha, initial_epochs)
        case "hinge":
            return hinge(alpha, a, b, initial_epochs, lag_in)
        case "polynomial":
            return polynomial(alpha, a, initial_epochs)
        case _:
            raise SettingError(
                f"weighting must be 'constant', 'hinge' or 'polynomial'; given {weighting!r}"
            )


@hyperparameters
def constant(alpha: Alpha = 0.1, initial_epochs: InitialEpochs = 10) -> Rule[None]:
    """Give every client model the same weight."""
    return _mixing("fedasync-constant", alpha, lambda _: 1.0, initial_epochs)


@hyperparameters
def hinge(
    alpha: Alpha = 0.1,
    a: Slope = 5.0,
    b: Knee = 5.0,
    initial_epochs: InitialEpochs = 10,
    lag_in: Annotated[LagIn, "how the hinge's lag is measured"] = "versions",
) -> Rule[None]:
    """Give a client model its whole weight up to a lag of b, and quickly less beyond it."""

    def lag_weight(arrival: Arrival) -> float:
        lag: float = arrival.lag
        if lag_in == "seconds":
            assert arrival.held_seconds is not None
            lag = arrival.held_seconds
        return 1.0 if lag <= b else 1.0 / (a * (lag - b) + 1.0)

    return _mixing("fedasync-hinge", alpha, lag_weight, initial_epochs, lag_in == "seconds")


@hyperparameters
def polynomial(
    alpha: Alpha = 0.1, a: Slope = 0.5, initial_epochs: InitialEpochs = 10
) -> Rule[None]:
    """Let the weight of a client model fall with a power of its lag."""
    return _mixing(
        "fedasync-polynomial", alpha, lambda late: (late.lag + 1.0) ** -a, initial_epochs
    )


def _mixing(
    name: str,
    alpha: float,
    lag_weight: Callable[[Arrival], float],
    initial_epochs: int,
    needs_seconds: bool = False,
) -> Rule[None]:
    work = Work(initial_epochs)

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        alpha_t = alpha * lag_weight(arrival)
        return Decision(None, work, figures={"learning_rate": alpha_t}, mix=alpha_t)

    return Rule(name, work, no_state, on_update, needs_seconds=needs_seconds)
