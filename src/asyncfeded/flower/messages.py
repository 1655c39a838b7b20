"""What server and clients send each other: the messages of Flower's `FedAvg`, and a little more.

A train message holds the arrays of the model and a config; its reply the arrays after training and
metrics, among these the number of examples. So a ClientApp that Flower's strategies can train, we
can train. What goes beyond is optional: entries of the config that only our ClientApp reads, and
metrics that only our server looks for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from asyncfeded.core.arguments import require_kind, require_number, require_whole
from asyncfeded.core.errors import require
from asyncfeded.core.messages import ClientUpdate, Refusal, TrainTask
from asyncfeded.core.validation import MOST_FIGURES
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec, UnfitRecordError

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
"""Flower's names of the records in a message; in a reply only their kinds count, as in Flower."""
NUM_EXAMPLES = "num-examples"
SERVER_ROUND = "server-round"
"""Flower's name for the round; ours is the version of the model that is sent."""
LOCAL_EPOCHS = "local-epochs"
PROXIMAL_MU = "proximal-mu"
CLIENT, CLIENT_ROUND = "client", "client-round"
"""Config: who trains, and the number of its task."""
LOCAL_STEPS, TRAIN_SECONDS = "local-steps", "train-seconds"
"""Metrics that a ClientApp may report: its mini-batches, and how long it trained."""
WHO = "query.client_name"
"""The query that our ClientApp answers with its name."""

Scalar = str | int | float | bool
Config = Mapping[str, Scalar] | Callable[[TrainTask], Mapping[str, Scalar]]
Identity = Literal["ask", "node"]

PATIENCE = 5.0
FIRST_SECONDS = 3600.0
EVALUATE_SECONDS = 300.0
POLL_SECONDS = 0.1

NO_DELTA: Any = np.empty(0, np.float64)
"""Stands for arrays that cannot be read: it is refused as of the wrong type."""
WRONG_LENGTH: Vector = np.empty(0, np.float32)
NO_NUMBER: Any = "?"
LONGEST_NAME = 200


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


class Trained(NamedTuple):
    """A reply as the server takes it: an update, what was wrong with it, and the time it took."""

    update: ClientUpdate
    unfit: str | None
    train_seconds: float | None


def read_trained(reply: Message, task: TrainTask, codec: Codec) -> Trained:
    """The update in a reply to a task; whatever is unfit becomes an update that is refused."""
    metrics = dict(_only(reply.content.metric_records) or {})
    examples = whole(metrics.pop(NUM_EXAMPLES, NO_NUMBER))
    steps = metrics.pop(LOCAL_STEPS, None)
    seconds = metrics.pop(TRAIN_SECONDS, None)
    unfit = None
    try:
        delta = codec.vector(arrays_of(reply))
        with np.errstate(over="ignore", invalid="ignore"):  # the server refuses what is not finite
            np.subtract(delta, task.parameters, out=delta)
    except UnfitRecordError as error:
        unfit = str(error)
        delta = WRONG_LENGTH if error.refusal == Refusal.WRONG_LENGTH else NO_DELTA
    if unfit is None and examples is NO_NUMBER:
        unfit = f"a reply must have a metric {NUM_EXAMPLES!r}, a whole number"
    figures = {name: float(v) for name, v in metrics.items() if isinstance(v, int | float)}
    update = ClientUpdate(
        client_id=task.client_id,
        version=task.version,
        delta=delta,
        num_examples=examples,
        epochs=task.epochs,
        round=task.round,
        steps=None if steps is None else whole(steps),
        figures=dict(list(figures.items())[:MOST_FIGURES]),
    )
    took = float(seconds) if isinstance(seconds, int | float) and isfinite(seconds) else None
    return Trained(update, unfit, took)


def read_evaluated(reply: Message) -> tuple[float, dict[str, float]] | None:
    """The weight and the metrics of a client's evaluation; None if there is no sense in it."""
    metrics = dict(_only(reply.content.metric_records) or {})
    weight = metrics.pop(NUM_EXAMPLES, None)
    if not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        return None
    numbers = {name: float(v) for name, v in metrics.items() if isinstance(v, int | float)}
    return float(weight), dict(list(numbers.items())[:MOST_FIGURES])


def read_name(reply: Message) -> str | None:
    """The name with which our ClientApp has answered."""
    record = _only(reply.content.config_records) or {}
    name = record.get(CLIENT)
    right = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
    return name if right else None


def whole(number: object) -> Any:
    """A count as a whole number; anything else stays what it is not."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if type(number) is int else NO_NUMBER


def _only(records: Mapping[str, Any]) -> Any:
    """The record of a kind, where there is exactly one."""
    return next(iter(records.values())) if len(records) == 1 else None


def arrays_of(message: Message) -> ArrayRecord:
    """The arrays in a message."""
    found: ArrayRecord | None = _only(message.content.array_records)
    if found is None:
        raise UnfitRecordError(Refusal.WRONG_TYPE, "a message must have one record of arrays")
    return found


def config_of(message: Message) -> dict[str, Any]:
    """The config in a message."""
    return dict(_only(message.content.config_records) or {})


def reply_record(arrays: ArrayRecord | None, metrics: Mapping[str, float]) -> RecordDict:
    """What a client answers with."""
    records: dict[str, Any] = {METRICS: MetricRecord(dict(metrics))}
    if arrays is not None:
        records[ARRAYS] = arrays
    return RecordDict(records)


def name_record(name: str | None) -> RecordDict:
    """A client's answer to who it is."""
    return RecordDict({CONFIG: ConfigRecord({} if name is None else {CLIENT: name})})


def check_evaluate_on(evaluate_on: object) -> None:
    """Refuse what can be no number of clients."""
    require_whole("evaluate_on", evaluate_on)
    require(
        isinstance(evaluate_on, int) and evaluate_on >= 0, "evaluate_on", "at least 0", evaluate_on
    )
