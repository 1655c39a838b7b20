"""A Flower Grid without Flower's processes: nodes of a test's own, on a clock that a test sets."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
"""Be the task of a run, without which Flower makes no message."""

MESSAGE_UNAVAILABLE, NODE_UNAVAILABLE = 3, 5
"""Flower's codes for a message that it does not have, and for a node that it has given up."""

LONGEST_SECONDS = 5000.0

Answer = Callable[[Message], Message | None]
"""What a node's ClientApp does with a message; None if it never answers."""


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < LONGEST_SECONDS, "what a test waits for never happens"


@dataclass
class Node:
    """A node: what it answers, how long that takes, and the name that it was registered with."""

    node_id: int
    answer: Answer
    seconds: float = 1.0
    name: str = ""


@dataclass
class _Sent:
    message: Message
    node: Node
    due: float


@dataclass
class FakeGrid(Grid):
    """Delivers messages to nodes, and their replies once they are due.

    `log` has every message that was pushed. What is in `strays` is delivered with the next replies,
    whoever asked; with `repeats`, so is every reply a second time. What it
    `holds` is not delivered.
    """

    clock: Callable[[], float]
    nodes: dict[int, Node] = field(default_factory=dict)
    log: list[Message] = field(default_factory=list)
    strays: list[Message] = field(default_factory=list)
    refuses: Callable[[Message], bool] = lambda message: False
    holds: Callable[[Message], bool] = lambda message: False
    repeats: bool = False

    def __post_init__(self) -> None:
        self._sent: dict[str, _Sent] = {}
        self._given_up: set[int] = set()

    def add(self, *nodes: Node) -> None:
        self.nodes |= {node.node_id: node for node in nodes}

    def kill(self, node_id: int) -> Node:
        """End a node: Flower gives it up at once, and says so of what it was sent."""
        self._given_up.add(node_id)
        return self.nodes.pop(node_id)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            node = self.nodes.get(message.metadata.dst_node_id)
            if node is None or self.refuses(message):
                ids.append("")
                continue
            message_id = f"message {len(self.log)}"
            message.metadata.__dict__["_message_id"] = message_id
            self.log.append(message)
            self._sent[message_id] = _Sent(message, node, self.clock() + node.seconds)
            ids.append(message_id)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies, self.strays = self.strays, []
        for message_id in message_ids:
            sent = self._sent.get(message_id)
            reply: Message | None
            if sent is None:
                message = self.log[int(message_id.split()[1])]
                replies.append(Message(Error(MESSAGE_UNAVAILABLE, "gone"), reply_to=message))
                continue
            if sent.node.node_id in self._given_up:
                reply = Message(Error(NODE_UNAVAILABLE, "gone"), reply_to=sent.message)
            elif sent.due <= self.clock() and not self.holds(sent.message):
                reply = sent.node.answer(sent.message)
                sent.due = inf
            else:
                continue
            if reply is not None:
                del self._sent[message_id]
                replies.append(reply)
                if self.repeats:
                    self.strays.append(reply)
        return replies

    def get_nodes(self) -> Iterable[NodeInfo]:
        return [NodeInfo(node_id=node.node_id, name=node.name) for node in self.nodes.values()]

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def set_run(self, run: Any) -> None:
        raise AssertionError

    @property
    def run(self) -> Any:
        raise AssertionError

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise AssertionError

    def send_and_receive(self, *_: Any, **__: Any) -> Iterable[Message]:
        raise AssertionError("it would wait for all replies")


def config_of(message: Message) -> dict[str, Any]:
    return dict(message.content.config_records["config"])


def arrays_of(message: Message) -> dict[str, Any]:
    return {name: array.numpy() for name, array in message.content.array_records["arrays"].items()}


def reply_with(message: Message, arrays: ArrayRecord | None, **metrics: Any) -> Message:
    """A reply of FedAvg's form; `num_examples` stands for num-examples, and so on."""
    named = {name.replace("_", "-"): value for name, value in metrics.items()}
    records: dict[str, Any] = {"metrics": MetricRecord(named)}
    if arrays is not None:
        records["arrays"] = arrays
    return Message(RecordDict(records), reply_to=message)


def plus(amount: float, examples: int = 10) -> Answer:
    """A ClientApp in Flower's manner, which knows no query, and adds a number to every element."""

    def answer(message: Message) -> Message:
        if message.metadata.message_type != "train":
            return Message(Error(2, "ValueError: No query function"), reply_to=message)
        arrays = {
            name: Array(array + np.float32(amount)) for name, array in arrays_of(message).items()
        }
        return reply_with(message, ArrayRecord(arrays), num_examples=examples)

    return answer


def named(name: str, answer: Answer) -> Answer:
    """The same ClientApp, which also says who it is, as ours does."""

    def both(message: Message) -> Message | None:
        if message.metadata.message_type == "query.client_name":
            record = RecordDict({"config": ConfigRecord({"client": name})})
            return Message(record, reply_to=message)
        return answer(message)

    return both
