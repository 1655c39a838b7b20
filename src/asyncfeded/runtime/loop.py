"""The driver: takes signals from the transport, asks the server, sends the server's tasks."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import Any

from asyncfeded.core.messages import PROTOCOL_FAULTS, ClientUpdate, Receipt, TrainTask
from asyncfeded.core.server import Server
from asyncfeded.core.validation import LARGEST_COUNT, are_counts
from asyncfeded.core.vectors import read_only
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.evaluation import Evaluate, Evaluation, HasReady, Pending
from asyncfeded.runtime.events import (
    Evaluated,
    Event,
    Finished,
    Joined,
    Left,
    Received,
    Replaced,
    Resumed,
    RoundLost,
    Started,
    Waiting,
)
from asyncfeded.runtime.saved import Saved
from asyncfeded.runtime.selection import Selection
from asyncfeded.runtime.transport import (
    AWAY,
    REJOINED,
    Arriving,
    Joining,
    Leaving,
    Losing,
    Quiet,
    Signal,
    Transport,
)


def run(
    server: Server,
    transport: Transport,
    seconds: float,
    evaluate: Evaluate | None = None,
    evaluate_every: float = 2.0,
    selection: Selection | None = None,
    control: Run | None = None,
    resumed: Saved | None = None,
) -> Generator[Event, None, None]:
    """Drive a run to its end at `seconds`, or until `control` stops it; yields its events.

    With `resumed`, what `control.state()` gave in an earlier process, the run goes on from there.
    Server, transport and selection are then already as they were.

    With a `selection`, a client that has reported gives its place to the chosen client; without
    it, every client goes on. The transport says which clients begin.

    The model is evaluated at 0, `evaluate_every`, 2 · `evaluate_every`, … up to the end. It only
    changes when an update arrives, so the loop looks before every signal which of these times have
    passed. An evaluation begins when it is due, and is yielded when the next is due: the run goes
    on meanwhile, and the order of the events is the same however long an evaluation takes. Where
    evaluations say when they are ready, those that are due before the last is ready are left out.

    Time never goes back, whatever the transport's clock does: a signal from before the one before
    counts as simultaneous with it, and a signal from after the end as one at the end.
    """
    control = Run(server, seconds) if control is None else control
    measure = _Measurements(server, evaluate, evaluate_every, control)
    now = 0.0
    control.parts["measurements"] = measure.state
    with closing(transport):
        if resumed is None:
            yield Started(now, server.rule.name, _digest(server))
        else:
            now = resumed["seconds"]
            measure.restore(resumed["measurements"])
            yield Resumed(now, server.rule.name, server.version)
        while control.stopped_by is None:
            control.at_rest(now)
            if (signal := transport.next_signal()) is None:
                break
            at = min(max(now, signal.seconds), seconds)
            yield from measure.due_before(at)
            if control.stopped_by is None:
                now = at
                signal = signal if at == signal.seconds else replace(signal, seconds=at)
                control.handling_begins()
                yield from _handle(server, transport, selection, signal)
        yield from measure.due_before(seconds)
        now = seconds if control.stopped_by is None else max(now, measure.latest)
        yield from measure.last_at(now)
    yield Finished(now, server.version, _digest(server), control.stopped_by)


def _handle(
    server: Server, transport: Transport, selection: Selection | None, signal: Signal
) -> Iterator[Event]:
    match signal:
        case Joining(at, client_id) if server.takes_part(client_id):
            number = server.round_of(client_id)
            if number is not None:  # else it waits for others, and goes on with them
                lost = Losing(at, client_id, number, REJOINED)
                yield from _handle(server, transport, selection, lost)
        case Joining(at, client_id):
            task = server.join(client_id)
            transport.send(task)
            yield Joined(at, client_id, task.version, task.epochs)
        case Arriving(at, update, held_seconds):
            receipt = server.receive(update, held_seconds)
            # After a fault of protocol the client keeps the task that it has, and its place.
            chooses = None if receipt.reason in PROTOCOL_FAULTS else selection
            replaced = _send(server, transport, chooses, at, receipt.tasks)
            # The tasks are sent first: no client waits for a log to be written.
            yield _received(at, update, receipt, held_seconds)
            yield from replaced
        case Losing(at, client_id, number, reason):
            if server.round_of(client_id) != number:
                return
            tasks = server.lose_round(client_id, number, reason)
            replaced = _send(server, transport, selection, at, tasks)
            yield RoundLost(at, client_id, number, reason, server.version)
            yield from replaced
        case Leaving(at, client_id, reason, lost_round):
            why = None if lost_round is None else AWAY
            # A client that is given up while away has left already.
            tasks = server.leave(client_id, why) if server.takes_part(client_id) else ()
            for task in tasks:
                transport.send(task)
            if lost_round is not None:
                yield RoundLost(at, client_id, lost_round, AWAY, server.version)
            yield Left(at, client_id, reason)
        case Quiet(at, silent_seconds):
            barrier = server.rule.on_round_end is not None
            yield Waiting(at, silent_seconds, server.at_work, barrier)


def _send(
    server: Server,
    transport: Transport,
    selection: Selection | None,
    seconds: float,
    tasks: Sequence[TrainTask],
) -> list[Replaced]:
    """Send tasks, or give a client's place to the chosen client."""
    replaced = []
    for task in tasks:
        name = task.client_id
        successor = name if selection is None else selection.after(name, seconds)
        if successor == name:
            transport.send(task)
        else:
            # The receipt names a task that is not sent; it stays in the log, whose digest must not
            # change.
            other = server.hand_over(task, successor)
            transport.send(other)
            replaced.append(Replaced(seconds, name, successor, other.version, other.epochs))
    return replaced


class _Measurements:
    """The evaluations of a run: at every due time, made once per version."""

    def __init__(
        self, server: Server, evaluate: Evaluate | None, every: float, control: Run
    ) -> None:
        self._server = server
        self._evaluate = evaluate
        self._every = every
        self._control = control
        self._count = 0
        self._version = 0
        self._parameters = server.parameters
        self._pending: Pending | None = None
        self._found: Evaluation | None = None
        self._due: float | None = None
        self.latest = 0.0

    def state(self) -> Saved:
        """What was measured last, and the model of an evaluation that was not reported yet."""
        pending = None if self._due is None else self._parameters
        return {
            "count": self._count,
            "latest": self.latest,
            "version": self._version,
            "due": self._due,
            "parameters": pending,
        }

    def restore(self, state: Saved) -> None:
        """Go on where a run was saved; begin the evaluation again that was not reported yet."""
        self._count, self.latest = state["count"], state["latest"]
        self._due = state["due"]
        if self._due is not None and self._evaluate is not None:
            self._version = state["version"]
            self._parameters = read_only(state["parameters"])
            self._begin(self._evaluate, self._due)

    def due_before(self, seconds: float) -> Iterator[Evaluated]:
        """Begin the evaluations that are due before `seconds`, unless the run is stopped."""
        while self._count * self._every < seconds and self._control.stopped_by is None:
            yield from self.due_at(self._count * self._every)

    def last_at(self, seconds: float) -> Iterator[Evaluated]:
        """Measure the last model at the end of the run, and wait for all evaluations."""
        yield from self.begun()
        if self._count == 0 or self.latest < seconds:
            yield from self.due_at(seconds)
        yield from self.begun()

    def due_at(self, seconds: float) -> Iterator[Evaluated]:
        """Wait for the evaluation under way, and begin the next."""
        self._count += 1
        if self._is_under_way():
            return
        self.latest = seconds
        if self._evaluate is None:
            return
        yield from self.begun()
        if self._pending is None or self._version != self._server.version:
            self._parameters = self._server.parameters
            self._begin(self._evaluate, seconds)
            self._version = self._server.version
        self._due = seconds

    def _begin(self, evaluate: Evaluate, seconds: float) -> None:
        self._found = None
        self._pending = evaluate(self._parameters, seconds)

    def _is_under_way(self) -> bool:
        """Whether training would have to wait for an evaluation that says when it is ready."""
        pending: object = self._pending
        return self._due is not None and isinstance(pending, HasReady) and not pending.ready()

    def begun(self) -> Iterator[Evaluated]:
        """Wait for the evaluation under way, if any."""
        if self._due is not None and self._pending is not None:
            if self._found is None:
                self._found = self._pending()
            self._control.show(self._parameters)
            yield Evaluated(self._due, self._version, self._found.metrics)
            self._control.show(None)
            self._due = None


def _received(
    seconds: float, update: ClientUpdate, receipt: Receipt, held_seconds: float | None
) -> Received:
    """The event of an answer; of a client's numbers it has those that can be recorded."""
    sent: tuple[Any, ...] = (update.round, update.version, update.epochs, update.num_examples)
    if receipt.accepted:  # the server has found all of them fit
        number, base, epochs, examples = sent
        sent = (None if number is None else int(number)), int(base), int(epochs), int(examples)
    else:
        sent = tuple(map(_recordable, sent))
    number, base, epochs, examples = sent
    return Received(seconds, number, base, epochs, receipt, examples, held_seconds)


def _recordable(value: Any) -> int | None:
    """A client's number; None for anything else that it has sent."""
    return int(value) if are_counts(value) and abs(value) <= LARGEST_COUNT else None


def _digest(server: Server) -> str:
    return sha256(server.parameters.tobytes()).hexdigest()
