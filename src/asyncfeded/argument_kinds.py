"""What kind of thing each argument of `federate` must be."""

from collections.abc import Mapping
from inspect import isclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.utils.data import Dataset

from asyncfeded.core.arguments import require_kind, require_number, require_whole
from asyncfeded.core.errors import SettingError
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.metrics import LOSS
from asyncfeded.core.rule import Rule
from asyncfeded.learning.local_training import LocalTraining

TAKEN_NAMES = {LOSS, "seconds", "version"}
"""Names that columns of accuracy.csv have already; an own accuracy takes the place of ours."""


def check_kinds(given: Mapping[str, Any]) -> None:
    """Refuse an argument of the wrong kind by its name; `given` has all of them."""
    require_kind(isinstance(given["model"], nn.Module), "model", "a torch module", given["model"])
    _check_datasets(given["datasets"])
    test = given["test"]
    if isinstance(test, Mapping) and not test:
        limit = "a data set, or at least one by client"
        raise SettingError(f"test must be {limit}; given an empty mapping: leave it out instead")
    rule, training, world = given["rule"], given["training"], given["world"]
    require_kind(isinstance(rule, Rule), "rule", "a rule, such as asyncfeded()", rule)
    require_kind(isinstance(training, LocalTraining), "training", "a LocalTraining", training)
    is_world = hasattr(world, "open") and hasattr(world, "clock") and not isclass(world)
    require_kind(is_world, "world", "a world, such as Virtual() or Ray()", world)
    limit = "a function of (output, target), or an instance of a torch loss"
    require_kind(_is_function(given["loss"]), "loss", limit, given["loss"])
    _check_metrics(given["metrics"])
    for name, limit in (
        ("callbacks", "a list of functions of (event, run)"),
        ("guards", "a list of guards, such as bounded_staleness(4.0)"),
    ):
        right = isinstance(given[name], list | tuple) and all(map(_is_function, given[name]))
        require_kind(right, name, limit, given[name])
    history = given["history"]
    right = history is None or isinstance(history, VersionHistory)
    require_kind(right, "history", "a VersionHistory", history)
    resume = given["resume"]
    right = resume is None or isinstance(resume, str | Path)
    require_kind(right, "resume", "the folder of a Checkpoint", resume)
    for name in ("seconds", "evaluate_every"):
        require_number(name, given[name])
    require_whole("seed", given["seed"])


def _check_datasets(datasets: Any) -> None:
    by_client = hasattr(datasets, "__len__") and hasattr(datasets, "__iter__")
    one = isinstance(datasets, Dataset | Tensor | str)
    limit = "a list or a mapping of data sets, one per client"
    require_kind(by_client and not one, "datasets", limit, datasets)
    if isinstance(datasets, dict):
        for name in datasets:
            if not isinstance(name, str):
                raise SettingError(f"datasets must name clients by texts; given {name!r}")


def _check_metrics(metrics: Any) -> None:
    if metrics is None:
        return
    right = isinstance(metrics, Mapping) and all(map(_is_function, metrics.values()))
    require_kind(right, "metrics", "a mapping from names to functions", metrics)
    for name in metrics:
        if not isinstance(name, str) or not name or name in TAKEN_NAMES:
            raise SettingError(
                f"metrics must be named by texts other than {', '.join(sorted(TAKEN_NAMES))}; "
                f"given {name!r}"
            )


def _is_function(value: object) -> bool:
    return callable(value) and not isclass(value)
