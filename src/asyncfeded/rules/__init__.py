"""Aggregation rules, one paper per file. Their contract stands in `asyncfeded.core.rule`."""

from collections.abc import Callable, Mapping

from asyncfeded.core.rule import AnyRule
from asyncfeded.rules.ace import ace, aced
from asyncfeded.rules.asyncfeded import asyncfeded
from asyncfeded.rules.ca2fl import ca2fl
from asyncfeded.rules.delay_adaptive import delay_adaptive
from asyncfeded.rules.fadas import fadas, fadas_adaptive
from asyncfeded.rules.fedasync import constant, fedasync, hinge, polynomial
from asyncfeded.rules.fedavg import fedavg
from asyncfeded.rules.fedbuff import fedbuff
from asyncfeded.rules.fednova import fednova
from asyncfeded.rules.fedopt import (
    fedadagrad,
    fedadam,
    fedavgm,
    fedbuff_adagrad,
    fedbuff_adam,
    fedbuff_momentum,
    fedbuff_yogi,
    fedyogi,
)
from asyncfeded.rules.fedprox import fedprox
from asyncfeded.rules.ringmaster import ringmaster

REGISTRY: Mapping[str, Callable[..., AnyRule]] = {
    "asyncfeded": asyncfeded,
    "fedasync-constant": constant,
    "fedasync-hinge": hinge,
    "fedasync-polynomial": polynomial,
    "fedavg": fedavg,
    "fedprox": fedprox,
    "fedbuff": fedbuff,
    "fedavgm": fedavgm,
    "fedadagrad": fedadagrad,
    "fedadam": fedadam,
    "fedyogi": fedyogi,
    "fedbuff-momentum": fedbuff_momentum,
    "fedbuff-adagrad": fedbuff_adagrad,
    "fedbuff-adam": fedbuff_adam,
    "fedbuff-yogi": fedbuff_yogi,
    "fadas": fadas,
    "fadas-adaptive": fadas_adaptive,
    "ca2fl": ca2fl,
    "ace": ace,
    "aced": aced,
    "delay-adaptive": delay_adaptive,
    "ringmaster": ringmaster,
    "fednova": fednova,
}
"""Every rule by name; a factory's annotated keyword arguments are the rule's hyperparameters."""

__all__ = [
    "REGISTRY",
    "ace",
    "aced",
    "asyncfeded",
    "ca2fl",
    "delay_adaptive",
    "fadas",
    "fadas_adaptive",
    "fedadagrad",
    "fedadam",
    "fedasync",
    "fedavg",
    "fedavgm",
    "fedbuff",
    "fedbuff_adagrad",
    "fedbuff_adam",
    "fedbuff_momentum",
    "fedbuff_yogi",
    "fednova",
    "fedprox",
    "fedyogi",
    "ringmaster",
]
