"""Flower as a transport: every client a node of a federation, in real time."""

import logging
import time
from collections import deque
from collections.abc import Callable

from flwr.app import Message, MessageType
from flwr.serverapp import Grid

from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.calls import Call, Calls, Reply
from asyncfeded.flower.clients import MOST_FAILURES, Client
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.evaluation import AskedClients, Piece, drawn
from asyncfeded.flower.faults import Fault, fault_of
from asyncfeded.flower.messages import Messages, evaluation_record
from asyncfeded.flower.nodes import Came, Nodes, Question, Went, question
from asyncfeded.flower.records import WHO
from asyncfeded.flower.replies import NO_DELTA, read_evaluated, read_name, read_trained
from asyncfeded.runtime.deadlines import Deadlines
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Quiet, Signal

log = logging.getLogger("flwr")
"""Flower's own log, which `flwr run --stream` shows."""

QUIET_SECONDS = 10.0
"""After this long without a signal, the watchdog names the clients at work."""
LEAST_SECONDS = 120.0
"""What every client is allowed, however short its rounds: Flower itself takes seconds per message,
and three quarters of a minute to see that a node is gone."""
ASK_SECONDS = 120.0
"""How long a node may take to say who it is."""
FIRST_POLL_SECONDS = 0.001

About = TrainTask | Question | Piece


class FlowerTransport:
    """Clients as nodes of a Flower federation, from `begins` to `seconds` of real time.

    The clock starts when the first client is there.

    A client joins when its node is there, and leaves when Flower has given up the node. A round
    without a usable reply is lost, for a reason of `Fault`; the client is sent its next task after
    a pause. Replies are taken in as they come; nothing waits for a certain one.
    """

    def __init__(
        self,
        grid: Grid,
        codec: Codec,
        messages: Messages,
        seconds: float,
        *,
        evaluate_on: int = 0,
        seed: int = 0,
        begins: float = 0.0,
        quiet_seconds: float = QUIET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._calls: Calls[About] = Calls(grid)
        self._codec = codec
        self._messages = messages
        self._seconds = seconds
        self._evaluate_on = evaluate_on
        self._seed = seed
        self._quiet_seconds = quiet_seconds
        self._clock, self._sleep = clock, sleep
        self._nodes = Nodes(grid, messages.identity, self._ask)
        self._deadlines = Deadlines(messages.patience, messages.first_seconds, LEAST_SECONDS)
        self._clients: dict[str, Client] = {}
        self._signals: deque[Signal] = deque()
        self._evaluation: AskedClients | None = None
        self._evaluations = 0
        self._begins = begins
        self._began: float | None = None
        self._heard = clock()
        self._poll = FIRST_POLL_SECONDS

    def send(self, task: TrainTask) -> None:
        """Send a client its task, or keep it until the client's pause is over."""
        client = self._clients.get(task.client_id)
        if client is None or not client.here:
            return  # it is leaving; its signal is already queued
        if task.round <= client.last_round:
            return  # after a fault of protocol: it was sent this task, and no other is due
        now = self._clock()
        client.task, client.last_round = task, task.round
        client.kept = client.pause_until > now
        if not client.kept:
            self._push(task, now)

    def next_signal(self) -> Signal | None:
        """Wait for the next signal; None when the time is over."""
        while self._in_run(now := self._clock()) < self._seconds:
            if not self._signals:
                self._go_on(now)
            if self._signals:
                self._heard = now
                return self._signals.popleft()
            if now - self._heard >= self._quiet_seconds:
                silent, self._heard = now - self._heard, now
                return Quiet(self._in_run(now), silent)
            self._rest()
        return None

    def has_more(self) -> bool:
        """Whether a client's signal is there already."""
        return bool(self._signals)

    def close(self) -> None:
        """Nothing is to be ended: Flower ends what belongs to its run."""

    def evaluate(self, parameters: Vector) -> AskedClients:
        """Begin to let clients measure a model."""
        self._evaluation = AskedClients(parameters, self._evaluations)
        self._evaluations += 1
        return self._evaluation

    def wait_for(self, evaluation: AskedClients) -> None:
        """Go on until the clients have answered, as far as they are there."""
        while not evaluation.done and (evaluation.awaited or self._here()):
            self._go_on(self._clock())
            if not evaluation.done:
                self._rest()

    def _in_run(self, now: float) -> float:
        """The time of the run at this time of the clock."""
        return self._begins if self._began is None else self._begins + now - self._began

    def _rest(self) -> None:
        """Sleep a little, longer the longer nothing has come."""
        self._sleep(self._poll)
        self._poll = min(2 * self._poll, self._messages.poll_seconds)

    def _here(self) -> list[str]:
        return [name for name, client in self._clients.items() if client.here]

    def _go_on(self, now: float) -> None:
        """Take in what has come, and see to what is due."""
        replies = self._calls.replies()
        for reply in replies:
            self._take_in(reply, self._clock())
        for call in self._calls.expired(now):
            self._lose(
                call.about, Fault.EXPIRED, f"no reply in {call.deadline - call.sent:.0f} s", now
            )
        for change in self._nodes.changes(now):
            self._note(change, now)
        for name, client in self._clients.items():
            self._see_to(name, client, now)
        if self._evaluation is not None and self._evaluation.awaited is None:
            self._ask_to_evaluate(self._evaluation, now)
        if replies:
            self._poll = FIRST_POLL_SECONDS

    def _note(self, change: Came | Went, now: float) -> None:
        """Note that a client's node has come; or that it went, and with it what it was asked."""
        client = self._clients.setdefault(change.client_id, Client())
        if isinstance(change, Came):
            client.pause_until = now
            return
        for call in self._calls.end(change.node_id):
            self._lose(call.about, Fault.NODE_UNAVAILABLE, "Flower has given it up", now)
        if client.here:
            self._leave(change.client_id, client, Fault.NODE_UNAVAILABLE, now)

    def _see_to(self, name: str, client: Client, now: float) -> None:
        """Let a client join whose node is there, or send it the task that was kept for it."""
        if client.pause_until > now or self._nodes.node_of(name) is None:
            return
        if not client.here:
            if any(isinstance(s, Losing | Leaving) and s.client_id == name for s in self._signals):
                return  # it has only just left: the server must hear of that first
            client.here = True
            self._began = now if self._began is None else self._began
            self._signals.append(Joining(self._in_run(now), name))
        elif client.kept and client.task is not None:
            client.kept = False
            self._push(client.task, now)

    def _push(self, task: TrainTask, now: float) -> None:
        node_id = self._nodes.node_of(task.client_id)
        if node_id is None:
            return  # it is leaving; its signal is already queued
        allowed = self._deadlines.allowance(task.client_id, task.epochs)
        record = self._messages.train(task, self._codec)
        if self._calls.send(node_id, MessageType.TRAIN, record, task, now, allowed) is None:
            self._lose(task, Fault.NOT_SENT, "Flower did not take the message", now)

    def _ask(self, node_id: int) -> bool:
        """Ask a node who it is."""
        about, now = Question(node_id), self._clock()
        return self._calls.send(node_id, WHO, question(), about, now, ASK_SECONDS) is not None

    def _ask_to_evaluate(self, evaluation: AskedClients, now: float) -> None:
        """Send the model to some of the clients that are there, once there are any."""
        names = drawn(self._here(), self._evaluate_on, self._seed, evaluation.number)
        if not names:
            return
        record = evaluation_record(evaluation.parameters, evaluation.number, self._codec)
        allowed = self._messages.evaluate_seconds
        evaluation.awaited = set(names)
        for name in names:
            node_id, piece = self._nodes.node_of(name), Piece(evaluation, name)
            kind = MessageType.EVALUATE
            if node_id is None or not self._calls.send(node_id, kind, record, piece, now, allowed):
                evaluation.answered(name, None)

    def _take_in(self, reply: Reply[About], now: float) -> None:
        """Turn a reply into a signal, or into part of an evaluation."""
        call, message = reply.call, reply.message
        if call is None:
            self._take_in_stray(reply, now)
        elif message.has_error():
            what = (message.error.reason or "").strip().rpartition("\n")[2]
            self._lose(call.about, fault_of(message.error.code), what, now)
        else:
            match call.about:
                case TrainTask():
                    self._take_in_update(reply.message_id, call, call.about, message, now)
                case Question(node_id):
                    self._nodes.answered(node_id, read_name(message))
                case Piece(evaluation, name):
                    evaluation.answered(name, read_evaluated(message))

    def _take_in_update(
        self, message_id: str, call: Call[About], task: TrainTask, message: Message, now: float
    ) -> None:
        trained, held = read_trained(message, task, self._codec), now - call.sent
        client = self._clients[task.client_id]
        client.answered = message_id, task.round, task.version
        if client.task is task:
            client.task = None
        if trained.unfit is None:
            client.failures = 0
            training = max(0.0, min(held, trained.train_seconds or 0.0))
            self._deadlines.answered(task.client_id, task.epochs, training, held - training)
        self._signals.append(Arriving(self._in_run(now), trained.update, held))
        if trained.unfit is not None:
            log.warning("%s has sent an unfit update: %s", task.client_id, trained.unfit)
            self._pause(task.client_id, client, "unfit update", now)

    def _take_in_stray(self, reply: Reply[About], now: float) -> None:
        """Let the server refuse a reply that answers nothing, or that came before."""
        name = self._nodes.client_of(reply.message.metadata.src_node_id) or ""
        number, version = -1, 0
        client = self._clients.get(name)
        if client is not None and client.answered and client.answered[0] == reply.message_id:
            _, number, version = client.answered
        log.warning("%s has sent a reply to no open message", name or "a node")
        update = ClientUpdate(name, version, NO_DELTA, 0, 0, number)
        self._signals.append(Arriving(self._in_run(now), update, 0.0))

    def _lose(self, about: About, fault: Fault, what: str, now: float) -> None:
        """Note that something will not be answered."""
        match about:
            case Question(node_id):
                log.warning("node %d has not said who it is: %s (%s)", node_id, fault, what)
                self._nodes.not_answered(node_id, fault, now)
            case Piece(evaluation, name):
                log.warning("%s has not evaluated: %s (%s)", name, fault, what)
                evaluation.answered(name, None)
            case TrainTask(client_id=name, round=number):
                log.warning("%s has lost round %d: %s (%s)", name, number, fault, what)
                self._lose_round(name, number, fault, now)

    def _lose_round(self, name: str, number: int, fault: Fault, now: float) -> None:
        client = self._clients[name]
        self._signals.append(Losing(self._in_run(now), name, number, fault))
        if fault is Fault.EXPIRED:
            self._deadlines.missed(name)
        if fault is Fault.NODE_UNAVAILABLE:
            self._nodes.lose(name)
            self._leave(name, client, fault, now)
        else:
            self._pause(name, client, fault, now)

    def _pause(self, name: str, client: Client, what: str, now: float) -> None:
        """Let a client that has failed rest; after too many failures in a row it leaves."""
        if client.failed(now):
            self._leave(name, client, f"{MOST_FAILURES} failures in a row; the last: {what}", now)

    def _leave(self, name: str, client: Client, reason: str, now: float) -> None:
        if client.here:
            client.left()
            self._signals.append(Leaving(self._in_run(now), name, reason))
