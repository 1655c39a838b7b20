"""Messages that were sent to nodes and await their replies. Nothing here waits for a reply."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from httpx import HTTPError

from asyncfeded.core.errors import ClusterError

About = TypeVar("About")
"""What a call is about: a task, an evaluation, a question."""


@dataclass(frozen=True, slots=True)
class Call(Generic[About]):
    """A message to a node that was not answered yet."""

    node_id: int
    about: About
    sent: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Reply(Generic[About]):
    """A reply, and the call that it answers; None if nothing was sent that it could answer."""

    message_id: str
    call: Call[About] | None
    message: Message


class Calls(Generic[About]):
    """All calls of a run, over Flower's public `Grid`: `push_messages` and `pull_messages`."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._open: dict[str, Call[About]] = {}

    def send(
        self, node_id: int, kind: str, record: RecordDict, about: About, now: float, ttl: float
    ) -> str | None:
        """Send a message; gives its id, or None if Flower did not take it."""
        message = Message(record, node_id, kind, ttl=ttl)
        with reaching_flower():
            ids = list(self._grid.push_messages([message]))
        if not ids or not ids[0]:
            return None
        self._open[ids[0]] = Call(node_id, about, now, now + ttl)
        return ids[0]

    def replies(self) -> list[Reply[About]]:
        """The replies that are there now."""
        if not self._open:
            return []
        with reaching_flower():
            messages = list(self._grid.pull_messages(list(self._open)))
        found = []
        for message in messages:
            message_id = message.metadata.reply_to_message_id
            call = self._open.get(message_id)
            if call is not None and not message.has_error():
                call = call if message.metadata.src_node_id == call.node_id else None
            if call is not None:
                del self._open[message_id]
            found.append(Reply(message_id, call, message))
        return found

    def expired(self, now: float) -> list[Call[About]]:
        """The calls whose time is over; their replies are no longer awaited."""
        late = [message_id for message_id, call in self._open.items() if call.deadline <= now]
        return [self._open.pop(message_id) for message_id in late]

    def end(self, node_id: int) -> list[Call[About]]:
        """The calls to a node that will not answer; their replies are no longer awaited."""
        to_it = [message_id for message_id, call in self._open.items() if call.node_id == node_id]
        return [self._open.pop(message_id) for message_id in to_it]


@contextmanager
def reaching_flower() -> Iterator[None]:
    """Say in one line that the SuperLink cannot be reached; Flower itself has tried again."""
    try:
        yield
    except HTTPError as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise ClusterError(
            f"flower cannot be reached: {what}; a run with a folder goes on when it is started "
            "again with the same folder"
        ) from error
