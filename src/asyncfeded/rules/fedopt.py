"""FedOpt: server optimizers on FedAvg's mean, and on FedBuff's.

The optimizers, their equations and their papers stand in `rules/server_optimizer`. FedAvgM,
FedAdagrad, FedAdam and FedYogi wait for all clients, as FedAvg does; the same optimizers after
FedBuff's buffer do not wait.
"""

from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Lt

from asyncfeded.core.hyperparameters import InitialEpochs, hyperparameters
from asyncfeded.core.rule import Rule
from asyncfeded.rules import server_optimizer
from asyncfeded.rules.fedavg import averaging
from asyncfeded.rules.fedbuff import BufferSize, StalenessExponent, buffering

Rate = Annotated[float, Gt(0), "η, the server's learning rate"]
Beta = Annotated[float, Ge(0), Lt(1), "β, how much of the server's momentum is kept"]
Beta1 = Annotated[float, Ge(0), Lt(1), "β₁, how much of the first moment is kept"]
Beta2 = Annotated[float, Ge(0), Lt(1), "β₂, how much of the second moment is kept"]
Adaptivity = Annotated[float, Gt(0), Le(1e6), "τ, which bounds how far the server's step adapts"]


@hyperparameters
def fedavgm(
    server_lr: Rate = 1.0, beta: Beta = 0.9, initial_epochs: InitialEpochs = 10
) -> Rule[Any]:
    """FedAvg's mean, with server momentum."""
    return averaging("fedavgm", initial_epochs, server_optimizer.momentum(server_lr, beta))


@hyperparameters
def fedadagrad(
    server_lr: Rate = 0.1,
    beta1: Beta1 = 0.0,
    adaptivity: Adaptivity = 1e-3,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedAvg's mean, with Adagrad on the server."""
    optimizer = server_optimizer.adagrad(server_lr, beta1, adaptivity)
    return averaging("fedadagrad", initial_epochs, optimizer)


@hyperparameters
def fedadam(
    server_lr: Rate = 0.1,
    beta1: Beta1 = 0.9,
    beta2: Beta2 = 0.99,
    adaptivity: Adaptivity = 1e-3,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedAvg's mean, with Adam on the server."""
    optimizer = server_optimizer.adam(server_lr, beta1, beta2, adaptivity)
    return averaging("fedadam", initial_epochs, optimizer)


@hyperparameters
def fedyogi(
    server_lr: Rate = 0.1,
    beta1: Beta1 = 0.9,
    beta2: Beta2 = 0.99,
    adaptivity: Adaptivity = 1e-3,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedAvg's mean, with Yogi on the server."""
    optimizer = server_optimizer.yogi(server_lr, beta1, beta2, adaptivity)
    return averaging("fedyogi", initial_epochs, optimizer)


@hyperparameters
def fedbuff_momentum(
    buffer_size: BufferSize = 10,
    server_lr: Rate = 0.1,
    beta: Beta = 0.9,
    staleness_exponent: StalenessExponent = 0.5,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedBuff's mean, with server momentum."""
    optimizer = server_optimizer.momentum(server_lr, beta)
    return buffering("fedbuff-momentum", buffer_size, staleness_exponent, initial_epochs, optimizer)


@hyperparameters
def fedbuff_adagrad(
    buffer_size: BufferSize = 10,
    server_lr: Rate = 0.03,
    beta1: Beta1 = 0.0,
    adaptivity: Adaptivity = 1e-3,
    staleness_exponent: StalenessExponent = 0.5,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedBuff's mean, with Adagrad on the server."""
    optimizer = server_optimizer.adagrad(server_lr, beta1, adaptivity)
    return buffering("fedbuff-adagrad", buffer_size, staleness_exponent, initial_epochs, optimizer)


@hyperparameters
def fedbuff_adam(
    buffer_size: BufferSize = 10,
    server_lr: Rate = 0.01,
    beta1: Beta1 = 0.9,
    beta2: Beta2 = 0.99,
    adaptivity: Adaptivity = 1e-3,
    staleness_exponent: StalenessExponent = 0.5,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedBuff's mean, with Adam on the server."""
    optimizer = server_optimizer.adam(server_lr, beta1, beta2, adaptivity)
    return buffering("fedbuff-adam", buffer_size, staleness_exponent, initial_epochs, optimizer)


@hyperparameters
def fedbuff_yogi(
    buffer_size: BufferSize = 10,
    server_lr: Rate = 0.01,
    beta1: Beta1 = 0.9,
    beta2: Beta2 = 0.99,
    adaptivity: Adaptivity = 1e-3,
    staleness_exponent: StalenessExponent = 0.5,
    initial_epochs: InitialEpochs = 10,
) -> Rule[Any]:
    """FedBuff's mean, with Yogi on the server."""
    optimizer = server_optimizer.yogi(server_lr, beta1, beta2, adaptivity)
    return buffering("fedbuff-yogi", buffer_size, staleness_exponent, initial_epochs, optimizer)
