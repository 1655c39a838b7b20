"""Aggregation rules, one paper per file. The contract stands in `asyncfeded.core.rule`."""

from collections.abc import Callable, Mapping
from functools import partial

from asyncfeded.core.rule import AnyRule
from asyncfeded.rules.asyncfeded import asyncfeded
from asyncfeded.rules.fedasync import fedasync
from asyncfeded.rules.fedavg import fedavg
from asyncfeded.rules.fedbuff import fedbuff
from asyncfeded.rules.fedprox import fedprox

REGISTRY: Mapping[str, Callable[..., AnyRule]] = {
    "asyncfeded": asyncfeded,
    "fedasync-constant": partial(fedasync, weighting="constant"),
    "fedasync-hinge": partial(fedasync, weighting="hinge"),
    "fedasync-polynomial": partial(fedasync, weighting="polynomial", a=0.5),
    "fedavg": fedavg,
    "fedprox": fedprox,
    "fedbuff": fedbuff,
}
"""Every rule by name; a factory's keyword arguments are the rule's hyperparameters."""

__all__ = ["REGISTRY", "asyncfeded", "fedasync", "fedavg", "fedbuff", "fedprox"]
