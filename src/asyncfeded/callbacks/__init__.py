"""Functions of (event, run) that watch a run, keep something of it or stop it."""

from asyncfeded.callbacks.checkpoint import Checkpoint
from asyncfeded.callbacks.client_curves import ClientCurves
from asyncfeded.callbacks.keep_best import KeepBest
from asyncfeded.callbacks.mlflow import MLflow
from asyncfeded.callbacks.progress import Progress
from asyncfeded.callbacks.prometheus import Prometheus
from asyncfeded.callbacks.stopping import StopAfter, StopAt
from asyncfeded.callbacks.tensorboard import TensorBoard
from asyncfeded.runtime.control import Callback, Run
from asyncfeded.store.log import EventLog

__all__ = [
    "Callback",
    "Checkpoint",
    "ClientCurves",
    "EventLog",
    "KeepBest",
    "MLflow",
    "Progress",
    "Prometheus",
    "Run",
    "StopAfter",
    "StopAt",
    "TensorBoard",
]
