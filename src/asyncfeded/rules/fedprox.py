"""FedProx: FedAvg with a proximal term in every client's loss.

Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith:
Federated Optimization in Heterogeneous Networks, 2020, arXiv:1812.06127.

    client:  min f_i(x) + μ/2 · ‖x − x_t‖²
    server:  as FedAvg

The term acts where the client trains: the rule sends μ along with the task.
"""

from typing import Annotated

from annotated_types import Ge

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.rule import Rule
from asyncfeded.rules.fedavg import Round, averaging


@hyperparameters
def fedprox(
    mu: Annotated[float, Ge(0), "μ, the weight of the proximal term"] = 0.1,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Round]:
    """Wait for everybody, whose training was held near x_t, then average."""
    return averaging("fedprox", initial_epochs, proximal_mu=mu)
