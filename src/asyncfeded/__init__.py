"""Asynchronous federated learning: AsyncFedED and its rivals, exact to the bit.

Every public name is here, and loaded when it is first asked for. The server and the rules need
NumPy and numba alone.
"""

from typing import TYPE_CHECKING

from asyncfeded.late import later
from asyncfeded.version import __version__

if TYPE_CHECKING:
    from asyncfeded import flower, guards, rules
    from asyncfeded.availability.availability import Availability
    from asyncfeded.callbacks import (
        Checkpoint,
        ClientCurves,
        EventLog,
        KeepBest,
        MLflow,
        Progress,
        Prometheus,
        Run,
        StopAfter,
        StopAt,
        TensorBoard,
    )
    from asyncfeded.cluster.ray_world import Ray, RayWorkers
    from asyncfeded.comparison import Comparison
    from asyncfeded.comparison.side_by_side import compare
    from asyncfeded.core.errors import (
        AsyncFedEDError,
        ClientStateError,
        ClusterError,
        FileError,
        InUseError,
        RuleError,
        SettingError,
        StateError,
        TrainingError,
        VersionError,
    )
    from asyncfeded.core.history import VersionHistory
    from asyncfeded.core.hyperparameters import hyperparameters
    from asyncfeded.core.messages import ClientUpdate, Receipt, Refusal, TrainTask
    from asyncfeded.core.persistent import PersistentMap
    from asyncfeded.core.piecewise import piecewise
    from asyncfeded.core.rule import Arrival, Decision, RoundEnd, Rule, Step, Work
    from asyncfeded.core.server import Server
    from asyncfeded.data import partition
    from asyncfeded.front_door import federate
    from asyncfeded.learning.local_training import LocalTraining
    from asyncfeded.learning.saving import load_model
    from asyncfeded.on_demand import ClientNames, OnDemand
    from asyncfeded.result import Result
    from asyncfeded.runtime import events
    from asyncfeded.runtime.devices import Devices, RoundTime
    from asyncfeded.runtime.membership import Membership
    from asyncfeded.runtime.selection import Selection
    from asyncfeded.simulation.devices import Device, DeviceModel
    from asyncfeded.simulation.profiles import heterogeneous_devices
    from asyncfeded.simulation.virtual_world import Virtual
    from asyncfeded.tasks.own_task import Task

__all__ = [
    "Arrival",
    "AsyncFedEDError",
    "Availability",
    "Checkpoint",
    "ClientCurves",
    "ClientNames",
    "ClientStateError",
    "ClientUpdate",
    "ClusterError",
    "Comparison",
    "Decision",
    "Device",
    "DeviceModel",
    "Devices",
    "EventLog",
    "FileError",
    "InUseError",
    "KeepBest",
    "LocalTraining",
    "MLflow",
    "Membership",
    "OnDemand",
    "PersistentMap",
    "Progress",
    "Prometheus",
    "Ray",
    "RayWorkers",
    "Receipt",
    "Refusal",
    "Result",
    "RoundEnd",
    "RoundTime",
    "Rule",
    "RuleError",
    "Run",
    "Selection",
    "Server",
    "SettingError",
    "StateError",
    "Step",
    "StopAfter",
    "StopAt",
    "Task",
    "TensorBoard",
    "TrainTask",
    "TrainingError",
    "VersionError",
    "VersionHistory",
    "Virtual",
    "Work",
    "__version__",
    "compare",
    "events",
    "federate",
    "flower",
    "guards",
    "heterogeneous_devices",
    "hyperparameters",
    "load_model",
    "partition",
    "piecewise",
    "rules",
]


__getattr__ = later(
    __name__,
    {
        "Arrival": "asyncfeded.core.rule",
        "AsyncFedEDError": "asyncfeded.core.errors",
        "Availability": "asyncfeded.availability.availability",
        "Checkpoint": "asyncfeded.callbacks",
        "ClientCurves": "asyncfeded.callbacks",
        "ClientNames": "asyncfeded.on_demand",
        "ClientStateError": "asyncfeded.core.errors",
        "ClientUpdate": "asyncfeded.core.messages",
        "ClusterError": "asyncfeded.core.errors",
        "Comparison": "asyncfeded.comparison",
        "Decision": "asyncfeded.core.rule",
        "Device": "asyncfeded.simulation.devices",
        "DeviceModel": "asyncfeded.simulation.devices",
        "Devices": "asyncfeded.runtime.devices",
        "EventLog": "asyncfeded.callbacks",
        "FileError": "asyncfeded.core.errors",
        "InUseError": "asyncfeded.core.errors",
        "KeepBest": "asyncfeded.callbacks",
        "LocalTraining": "asyncfeded.learning.local_training",
        "MLflow": "asyncfeded.callbacks",
        "Membership": "asyncfeded.runtime.membership",
        "OnDemand": "asyncfeded.on_demand",
        "PersistentMap": "asyncfeded.core.persistent",
        "Progress": "asyncfeded.callbacks",
        "Prometheus": "asyncfeded.callbacks",
        "Ray": "asyncfeded.cluster.ray_world",
        "RayWorkers": "asyncfeded.cluster.ray_world",
        "Receipt": "asyncfeded.core.messages",
        "Refusal": "asyncfeded.core.messages",
        "Result": "asyncfeded.result",
        "RoundEnd": "asyncfeded.core.rule",
        "RoundTime": "asyncfeded.runtime.devices",
        "Rule": "asyncfeded.core.rule",
        "RuleError": "asyncfeded.core.errors",
        "Run": "asyncfeded.callbacks",
        "Selection": "asyncfeded.runtime.selection",
        "Server": "asyncfeded.core.server",
        "SettingError": "asyncfeded.core.errors",
        "StateError": "asyncfeded.core.errors",
        "Step": "asyncfeded.core.rule",
        "StopAfter": "asyncfeded.callbacks",
        "StopAt": "asyncfeded.callbacks",
        "Task": "asyncfeded.tasks.own_task",
        "TensorBoard": "asyncfeded.callbacks",
        "TrainTask": "asyncfeded.core.messages",
        "TrainingError": "asyncfeded.core.errors",
        "VersionError": "asyncfeded.core.errors",
        "VersionHistory": "asyncfeded.core.history",
        "Virtual": "asyncfeded.simulation.virtual_world",
        "Work": "asyncfeded.core.rule",
        "compare": "asyncfeded.comparison.side_by_side",
        "events": "asyncfeded.runtime.events",
        "federate": "asyncfeded.front_door",
        "flower": "asyncfeded.flower",
        "guards": "asyncfeded.guards",
        "heterogeneous_devices": "asyncfeded.simulation.profiles",
        "hyperparameters": "asyncfeded.core.hyperparameters",
        "load_model": "asyncfeded.learning.saving",
        "partition": "asyncfeded.data.partition",
        "piecewise": "asyncfeded.core.piecewise",
        "rules": "asyncfeded.rules",
    },
)


def __dir__() -> list[str]:
    return __all__
