"""The records in a message, as Flower's `FedAvg` names them, and the entries that we add to them.

What we add is optional: entries of the config that only our ClientApp reads, and metrics that only
our server looks for.
"""

from collections.abc import Mapping
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from asyncfeded.core.messages import Refusal
from asyncfeded.flower.codec import UnfitRecordError

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


def only_one(records: Mapping[str, Any]) -> Any:
    """The record of a kind, where there is exactly one."""
    return next(iter(records.values())) if len(records) == 1 else None


def arrays_of(message: Message) -> ArrayRecord:
    """The arrays in a message."""
    found: ArrayRecord | None = only_one(message.content.array_records)
    if found is None:
        raise UnfitRecordError(Refusal.WRONG_TYPE, "a message must have one record of arrays")
    return found


def config_of(message: Message) -> dict[str, Any]:
    """The config in a message."""
    return dict(only_one(message.content.config_records) or {})


def reply_record(arrays: ArrayRecord | None, metrics: Mapping[str, float]) -> RecordDict:
    """What a client answers with."""
    records: dict[str, Any] = {METRICS: MetricRecord(dict(metrics))}
    if arrays is not None:
        records[ARRAYS] = arrays
    return RecordDict(records)


def name_record(name: str | None) -> RecordDict:
    """A client's answer to who it is."""
    return RecordDict({CONFIG: ConfigRecord({} if name is None else {CLIENT: name})})
