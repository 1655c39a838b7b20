"""Asynchronous federated learning: AsyncFedED and its rivals, exact to the bit.

The server and the rules need NumPy and numba alone; what trains with torch is loaded when it is
first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asyncfeded import guards, rules
from asyncfeded.core.errors import AsyncFedEDError, FileError, SettingError, TrainingError
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.hyperparameters import hyperparameters
from asyncfeded.core.messages import ClientUpdate, Receipt, Refusal, TrainTask
from asyncfeded.core.persistent import PersistentMap
from asyncfeded.core.rule import Arrival, Decision, RoundEnd, Rule, Step, Work
from asyncfeded.core.server import Server
from asyncfeded.data import partition
from asyncfeded.on_demand import ClientNames, OnDemand
from asyncfeded.version import __version__

if TYPE_CHECKING:
    from asyncfeded.callbacks import (
        ClientCurves,
        EventLog,
        KeepBest,
        Progress,
        Run,
        StopAfter,
        StopAt,
    )
    from asyncfeded.cluster.world import Ray, RayWorkers
    from asyncfeded.front_door import federate
    from asyncfeded.learning.local_training import LocalTraining
    from asyncfeded.result import Result
    from asyncfeded.simulation.world import Virtual

__all__ = [
    "Arrival",
    "AsyncFedEDError",
    "ClientCurves",
    "ClientNames",
    "ClientUpdate",
    "Decision",
    "EventLog",
    "FileError",
    "KeepBest",
    "LocalTraining",
    "OnDemand",
    "PersistentMap",
    "Progress",
    "Ray",
    "RayWorkers",
    "Receipt",
    "Refusal",
    "Result",
    "RoundEnd",
    "Rule",
    "Run",
    "Server",
    "SettingError",
    "Step",
    "StopAfter",
    "StopAt",
    "TrainTask",
    "TrainingError",
    "VersionHistory",
    "Virtual",
    "Work",
    "__version__",
    "federate",
    "guards",
    "hyperparameters",
    "partition",
    "rules",
]


_LATER = {
    "ClientCurves": "asyncfeded.callbacks",
    "EventLog": "asyncfeded.callbacks",
    "KeepBest": "asyncfeded.callbacks",
    "LocalTraining": "asyncfeded.learning.local_training",
    "Progress": "asyncfeded.callbacks",
    "Run": "asyncfeded.callbacks",
    "StopAfter": "asyncfeded.callbacks",
    "StopAt": "asyncfeded.callbacks",
    "Ray": "asyncfeded.cluster.world",
    "RayWorkers": "asyncfeded.cluster.world",
    "Result": "asyncfeded.result",
    "Virtual": "asyncfeded.simulation.world",
    "federate": "asyncfeded.front_door",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
