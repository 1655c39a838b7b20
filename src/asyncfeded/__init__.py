"""Asynchronous federated learning: AsyncFedED and its rivals, exact to the bit.

The server and the rules need NumPy and numba alone; what trains with torch is loaded when it is
first asked for.
"""

from typing import TYPE_CHECKING, Any

from asyncfeded import guards, rules
from asyncfeded.core.errors import AsyncFedEDError
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
    from asyncfeded.experiment.federate import federate
    from asyncfeded.learning.rounds import LocalTraining

__all__ = [
    "Arrival",
    "AsyncFedEDError",
    "ClientNames",
    "ClientUpdate",
    "Decision",
    "LocalTraining",
    "OnDemand",
    "PersistentMap",
    "Receipt",
    "Refusal",
    "RoundEnd",
    "Rule",
    "Server",
    "Step",
    "TrainTask",
    "VersionHistory",
    "Work",
    "__version__",
    "federate",
    "guards",
    "hyperparameters",
    "partition",
    "rules",
]


def __getattr__(name: str) -> Any:
    if name == "federate":
        from asyncfeded.experiment.federate import federate

        return federate
    if name == "LocalTraining":
        from asyncfeded.learning.rounds import LocalTraining

        return LocalTraining
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
