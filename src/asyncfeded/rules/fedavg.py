"""FedAvg: a synchronous mean of the clients' models, weighted by their numbers of examples.

Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera y Arcas:
Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017, arXiv:1602.05629.

    x_{t+1} = Σ n_i · x_i / Σ n_i = x_t + Σ n_i · Δ_i / Σ n_i

Everybody in a round starts from x_t, so the mean of the models is the mean of the deltas.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import require
from asyncfeded.core.rule import Arrival, Decision, RoundEnd, Rule, Step, Work


@dataclass(frozen=True, slots=True)
class Round:
    """What has been reported so far: Σ n_i · Δ_i in float64, in order of arrival, and Σ n_i."""

    weighted_sum: npt.NDArray[np.float64] | None = None
    examples: int = 0


def fedavg(
    initial_epochs: Annotated[int, "K of the first round; at least 1"] = 10,
) -> Rule[Round]:
    """Wait for everybody, then average."""
    return averaging("fedavg", {"initial_epochs": initial_epochs}, initial_epochs)


def averaging(
    name: str, settings: dict[str, object], initial_epochs: int, proximal_mu: float = 0.0
) -> Rule[Round]:
    """Build a rule with FedAvg's mean, for clients that train with this proximal term."""
    require(initial_epochs >= 1, "initial_epochs", "at least 1", initial_epochs)
    work = Work(initial_epochs, proximal_mu)

    def on_update(so_far: Round, arrival: Arrival) -> Decision[Round]:
        weighted = arrival.delta.astype(np.float64) * arrival.num_examples
        if so_far.weighted_sum is not None:
            weighted += so_far.weighted_sum
        return Decision(Round(weighted, so_far.examples + arrival.num_examples), work)

    def on_round_end(reported: Round) -> RoundEnd[Round]:
        if reported.weighted_sum is None:
            return RoundEnd(Round(), step=None)
        mean = reported.weighted_sum / reported.examples
        return RoundEnd(Round(), Step(1.0, mean.astype(np.float32)))

    return Rule(name, settings, work, Round(), on_update, on_round_end, reads_base=False)
