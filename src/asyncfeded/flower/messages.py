"""What the server sends to clients: the messages of Flower's `FedAvg`, and a little more.

A train message holds the arrays of the model and a config; its reply the arrays after training and
metrics, among these the number of examples. So a ClientApp that Flower's strategies can train, we
can train.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

from flwr.app import ConfigRecord, RecordDict

from asyncfeded.core.arguments import require_kind, require_number, require_whole
from asyncfeded.core.errors import require
from asyncfeded.core.messages import TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.records import (
    ARRAYS,
    CLIENT,
    CLIENT_ROUND,
    CONFIG,
    LOCAL_EPOCHS,
    PROXIMAL_MU,
    SERVER_ROUND,
)

Scalar = str | int | float | bool
Config = Mapping[str, Scalar] | Callable[[TrainTask], Mapping[str, Scalar]]
Identity = Literal["ask", "node"]

PATIENCE = 5.0
FIRST_SECONDS = 3600.0
EVALUATE_SECONDS = 300.0
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Messages:
    """How the server talks to clients.

    - `epochs_key`: the entry of the config in which a ClientApp is told K, its local epochs.
    - `config`: further entries for every train message, such as {"lr": 0.01}, or a function that
      makes them of a `TrainTask`.
    - `identity`: "ask" asks the ClientApp of a node for its name, which ours makes of the node's
      partition-id; "node" does not. A node that was registered with a name is known by that name in
      any case. A node without any name is known by its node id, which Flower keeps as long as the
      SuperNode runs: after a restart it is another client.
    - `patience`: a client may take this many times as long as it has taken before, and at first
      `first_seconds`; what comes later has expired.
    - `evaluate_seconds`: how long clients may take to evaluate.
    - `poll_seconds`: how often the server looks for replies while none come.
    """

    epochs_key: str = LOCAL_EPOCHS
    config: Config = field(default_factory=dict)
    identity: Identity = "ask"
    patience: float = PATIENCE
    first_seconds: float = FIRST_SECONDS
    evaluate_seconds: float = EVALUATE_SECONDS
    poll_seconds: float = POLL_SECONDS

    def __post_init__(self) -> None:
        right = isinstance(self.epochs_key, str) and bool(self.epochs_key)
        require(right, "epochs_key", "a text", self.epochs_key)
        right = callable(self.config) or isinstance(self.config, Mapping)
        require_kind(right, "config", "a mapping, or a function of a TrainTask", self.config)
        require(self.identity in ("ask", "node"), "identity", "'ask' or 'node'", self.identity)
        require_number("patience", self.patience)
        require(self.patience >= 1, "patience", "at least 1", self.patience)
        for name in ("first_seconds", "evaluate_seconds", "poll_seconds"):
            value = getattr(self, name)
            require_number(name, value)
            require(isfinite(value) and value > 0, name, "a finite number above 0", value)

    def train(self, task: TrainTask, codec: Codec) -> RecordDict:
        """What a client is sent to train."""
        own = self.config(task) if callable(self.config) else self.config
        config: dict[str, Any] = {
            **own,
            self.epochs_key: task.epochs,
            SERVER_ROUND: task.version,
            CLIENT: task.client_id,
            CLIENT_ROUND: task.round,
        }
        if task.proximal_mu:
            config[PROXIMAL_MU] = task.proximal_mu
        return RecordDict({ARRAYS: codec.record(task.parameters), CONFIG: ConfigRecord(config)})


def evaluation_record(parameters: Vector, number: int, codec: Codec) -> RecordDict:
    """What a client is sent to evaluate; the number of the evaluation stands for the round."""
    config = ConfigRecord({SERVER_ROUND: number})
    return RecordDict({ARRAYS: codec.record(parameters), CONFIG: config})


def check_evaluate_on(evaluate_on: object) -> None:
    """Refuse what can be no number of clients."""
    require_whole("evaluate_on", evaluate_on)
    require(
        isinstance(evaluate_on, int) and evaluate_on >= 0, "evaluate_on", "at least 0", evaluate_on
    )
