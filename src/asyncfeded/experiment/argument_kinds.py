"""What kind of thing each argument of `federate` must be."""

from collections.abc import Mapping
from inspect import isclass
from numbers import Integral, Real
from typing import Any

from torch import Tensor, nn
from torch.utils.data import Dataset

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.metrics import LOSS
from asyncfeded.core.rule import Rule
from asyncfeded.learning.rounds import LocalTraining
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.devices import DeviceModel

NUMBERS = ("seconds", "suspension", "evaluate_every", "patience")
WHOLE_NUMBERS = ("seed", "workers", "sketch_buckets")
FUNCTIONS = {
    "loss": "a function of (output, target), or an instance of a torch loss",
}

TAKEN_NAMES = {LOSS, "seconds", "version"}
"""Names that columns of accuracy.csv have already; an own accuracy takes the place of ours."""


def check_kinds(given: Mapping[str, Any]) -> None:
    """Refuse an argument of the wrong kind by its name; `given` has all of them."""
    _require(isinstance(given["module"], nn.Module), "module", "a torch module", given["module"])
    _check_datasets(given["datasets"])
    test = given["test"]
    if isinstance(test, Mapping) and not test:
        limit = "a data set, or at least one by client"
        raise SettingError(f"test must be {limit}; given an empty mapping: leave it out instead")
    rule, training = given["rule"], given["training"]
    _require(isinstance(rule, Rule), "rule", "a rule, such as asyncfeded()", rule)
    _require(isinstance(training, LocalTraining), "training", "a LocalTraining", training)
    for name, limit in FUNCTIONS.items():
        _require(_is_function(given[name]), name, limit, given[name])
    _check_optional(given)
    for name in NUMBERS:
        _check_number(name, given[name])
    for name in WHOLE_NUMBERS:
        whole = isinstance(given[name], Integral) and not isinstance(given[name], bool)
        require(whole, name, "a whole number", given[name])


def _check_datasets(datasets: Any) -> None:
    by_client = hasattr(datasets, "__len__") and hasattr(datasets, "__iter__")
    one = isinstance(datasets, Dataset | Tensor | str)
    limit = "a list or a mapping of data sets, one per client"
    _require(by_client and not one, "datasets", limit, datasets)
    if isinstance(datasets, dict):
        for name in datasets:
            if not isinstance(name, str):
                raise SettingError(f"datasets must name clients by texts; given {name!r}")


def _check_optional(given: Mapping[str, Any]) -> None:
    """Check what may be left out."""
    optimizers, devices = given["optimizers"], given["devices"]
    memberships, selection = given["memberships"], given["selection"]
    metrics = given["metrics"]
    if metrics is not None:
        right = isinstance(metrics, Mapping) and all(map(_is_function, metrics.values()))
        _require(right, "metrics", "a mapping from names to functions", metrics)
        for name in metrics:
            _check_metric_name(name)
    if optimizers is not None:
        right = isinstance(optimizers, Mapping) and all(map(callable, optimizers.values()))
        limit = "a mapping from clients to functions that make an optimizer"
        _require(right, "optimizers", limit, optimizers)
    if devices is not None:
        _require(isinstance(devices, DeviceModel), "devices", "a DeviceModel", devices)
    if memberships is not None:
        right = isinstance(memberships, list | tuple) and all(
            isinstance(member, Membership) for member in memberships
        )
        _require(right, "memberships", "a list of Membership", memberships)
    if selection is not None:
        right = hasattr(selection, "first") and hasattr(selection, "after")
        _require(right and not isclass(selection), "selection", "a Selection", selection)
    if given["max_staleness"] is not None:
        _check_number("max_staleness", given["max_staleness"])
    callbacks = given["callbacks"]
    right = isinstance(callbacks, list | tuple) and all(map(_is_function, callbacks))
    _require(right, "callbacks", "a list of functions of (event, run)", callbacks)


def _check_metric_name(name: object) -> None:
    if not isinstance(name, str) or not name or name in TAKEN_NAMES:
        raise SettingError(
            f"metrics must be named by texts other than {', '.join(sorted(TAKEN_NAMES))}; "
            f"given {name!r}"
        )


def _is_function(value: object) -> bool:
    return callable(value) and not isclass(value)


def _check_number(name: str, value: object) -> None:
    require(isinstance(value, Real) and not isinstance(value, bool), name, "a number", value)


def _require(right: bool, name: str, limit: str, value: object) -> None:
    """As `require`, but name the kind of the value: a module or data set fills many lines."""
    if not right:
        if isclass(value):
            raise SettingError(f"{name} must be {limit}; given the class {value.__name__}")
        kind = type(value).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise SettingError(f"{name} must be {limit}; given {article} {kind}")
