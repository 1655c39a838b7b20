"""FedAsync: a weighted mean of the model and the client's, by version lag.

Cong Xie, Sanmi Koyejo, Indranil Gupta: Asynchronous Federated Optimization, 2019,
arXiv:1903.03934.

    x_{t+1} = (1 − α_t) · x_t + α_t · x_client,      α_t = α · s(τ)

    constant      s(τ) = 1
    hinge         s(τ) = 1 if τ ≤ b, else 1 / (a · (τ − b) + 1)
    polynomial    s(τ) = (τ + 1)^(−a)

τ is the lag in versions, and α is never changed: it does not compound from update to update.
"""

from collections.abc import Callable
from math import isfinite
from typing import Annotated, Literal

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work

Weighting = Literal["constant", "hinge", "polynomial"]


def fedasync(
    alpha: Annotated[float, "α, the weight of a fresh client model; above 0, at most 1"] = 0.1,
    weighting: Weighting = "constant",
    a: Annotated[float, "how steeply the weight falls with the lag; at least 0"] = 5.0,
    b: Annotated[float, "the lag up to which hinge does not weigh down; at least 0"] = 5.0,
    initial_epochs: Annotated[int, "K of the first round; at least 1"] = 10,
) -> Rule[None]:
    """Mix every client model in at once, with a weight that falls with its version lag."""
    require(0 < alpha <= 1, "alpha", "above 0 and at most 1", alpha)
    require(isfinite(a) and a >= 0, "a", "at least 0", a)
    require(isfinite(b) and b >= 0, "b", "at least 0", b)
    require(initial_epochs >= 1, "initial_epochs", "at least 1", initial_epochs)
    lag_weight = _lag_weight(weighting, a, b)
    shape = {"constant": {}, "hinge": {"a": a, "b": b}, "polynomial": {"a": a}}[weighting]
    work = Work(initial_epochs)

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        alpha_t = alpha * lag_weight(arrival.lag)
        towards_client = arrival.base + arrival.delta
        towards_client -= arrival.current
        return Decision(
            state=None,
            work=work,
            step=Step(alpha_t, towards_client),
            figures={"learning_rate": alpha_t},
        )

    return Rule(
        name=f"fedasync-{weighting}",
        settings={"alpha": alpha, **shape, "initial_epochs": initial_epochs},
        first_work=work,
        initial_state=None,
        on_update=on_update,
    )


def _lag_weight(weighting: Weighting, a: float, b: float) -> Callable[[int], float]:
    """The function s(τ)."""
    match weighting:
        case "constant":
            return lambda _: 1.0
        case "hinge":
            return lambda lag: 1.0 if lag <= b else 1.0 / (a * (lag - b) + 1.0)
        case "polynomial":
            return lambda lag: (lag + 1.0) ** -a
        case _:
            raise SettingError(
                f"weighting must be 'constant', 'hinge' or 'polynomial'; given {weighting!r}"
            )
