"""FedProx: FedAvg with a proximal term in every client's loss.

Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith:
Federated Optimization in Heterogeneous Networks, 2020, arXiv:1812.06127.

    client:  min f_i(x) + μ/2 · ‖x − x_t‖²
    server:  as FedAvg

The term acts where the client trains: the rule sends μ along with the task.
"""

from math import isfinite
from typing import Annotated

from asyncfeded.core.errors import require
from asyncfeded.core.rule import Rule
from asyncfeded.rules.fedavg import Round, averaging


def fedprox(
    mu: Annotated[float, "μ, the weight of the proximal term; at least 0"] = 0.1,
    initial_epochs: Annotated[int, "K of the first round; at least 1"] = 10,
) -> Rule[Round]:
    """Wait for everybody, whose training was held near x_t, then average."""
    require(isfinite(mu) and mu >= 0, "mu", "at least 0", mu)
    return averaging("fedprox", {"mu": mu, "initial_epochs": initial_epochs}, initial_epochs, mu)
