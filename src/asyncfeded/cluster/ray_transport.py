"""Ray as a transport: every client a process of its own, in real time."""

import time
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal

import ray
from ray.exceptions import RayActorError, RayError

from asyncfeded.cluster.actors import (
    START_SECONDS,
    Actor,
    cpus_each,
    in_one_line,
    wait_until_prepared,
)
from asyncfeded.cluster.processes import (
    NOTHING_IMPOSED,
    Answer,
    ClientProcess,
    Imposed,
    MakeTrain,
)
from asyncfeded.cluster.published import Published
from asyncfeded.core.errors import ClusterError, require
from asyncfeded.core.history import NOTHING
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.runtime.deadlines import Deadlines
from asyncfeded.runtime.jobs import order_of
from asyncfeded.runtime.membership import Membership, Presence, Stay, Stays
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Quiet, Signal

Delays = Callable[[TrainTask, float], Imposed]
"""What a client's device takes for a task that it gets at this time of the run."""

QUIET_SECONDS = 10.0
"""After this long without a signal, the watchdog names the clients at work."""
MOST_FAILURES = 5
"""A client is given up after this many failures in a row, without an update between them."""
FIRST_PAUSE_SECONDS = 0.5
"""How long a client rests after a failure; after every further one, twice as long."""


@dataclass(slots=True)
class _Call:
    """Something that a client was asked and has not answered."""

    client_id: str
    sent: float
    deadline: float
    task: TrainTask | None = None
    """Without its parameters; None if the client was asked to be ready."""
    imposed_seconds: float = 0.0


def _joins(stay: Stay) -> float:
    return stay.joins


class RayTransport:
    """Clients as Ray actors, from 0 to `seconds` of real time.

    The clock starts when the first signal is asked for; those who take part from the beginning are
    ready by then. A client whose process dies, whose training raises or that misses its deadline
    leaves, which releases its lease; Ray starts its process again, and it joins anew. After
    `MOST_FAILURES` in a row it is given up. With a `presence`, clients take part only while they
    are there: who goes away loses its round, its process ends and another is made ready, and the
    client joins again when it is back. The clock begins at `begins`, above 0 in a run that goes on.
    """

    def __init__(
        self,
        clients: Mapping[str, MakeTrain],
        seconds: float,
        *,
        memberships: Sequence[Membership] | None = None,
        delays: Delays | None = None,
        deadlines: Deadlines | None = None,
        quiet_seconds: float = QUIET_SECONDS,
        presence: Presence | None = None,
        begins: float = 0.0,
    ) -> None:
        require(isfinite(seconds) and seconds > 0, "seconds", "a finite number above 0", seconds)
        members = [Membership(name) for name in clients] if memberships is None else memberships
        require(len(members) > 0, "memberships", "at least one client", members)
        self._clients = clients
        self._seconds = seconds
        self._delays = delays
        self._deadlines = Deadlines() if deadlines is None else deadlines
        self._quiet_seconds = quiet_seconds
        self._published = Published()
        self._stays = Stays(members, presence)
        self._begins = begins
        stays = (self._stays.after(name, begins) for name in self._stays.clients)
        self._joins = sorted((stay for stay in stays if stay is not None), key=_joins)
        self._here: dict[str, Stay] = {}  # of those whose stay has begun
        self._actors: dict[str, Actor] = {}
        self._calls: dict[Any, _Call] = {}  # in the order of sending: who waits longest is first
        self._signals: deque[Signal] = deque()
        self._pauses: dict[str, tuple[float, float]] = {}  # until when, and then ready by when
        self._failures: defaultdict[str, int] = defaultdict(int)
        self._given_up = ""
        self._began: float | None = None
        self._heard = begins
        self._cpus = cpus_each(len(self._stays))
        try:
            begin = [stay.client_id for stay in self._joins if stay.joins <= begins]
            named = {f"client {name!r}": self._make_actor(name) for name in begin}
            wait_until_prepared(named, "clients")
        except ClusterError:
            self.close()
            raise

    def send(self, task: TrainTask) -> None:
        """Let a client's process train, from the model in the object store."""
        if task.client_id not in self._here:
            return  # it is leaving; its signal is already queued
        now = self._now()
        imposed = NOTHING_IMPOSED if self._delays is None else self._delays(task, now)
        allowed = imposed.total + self._deadlines.allowance(task.client_id, task.epochs)
        parameters, order = self._published(task.parameters), [*order_of(task), *imposed]
        reference = self._actors[task.client_id].call("train", parameters, order)
        bare = task._replace(parameters=NOTHING)
        self._calls[reference] = _Call(task.client_id, now, now + allowed, bare, imposed.total)

    def next_signal(self) -> Signal | None:
        """Wait for the next signal; None when the time is over."""
        while (now := self._now()) < self._seconds:
            self._note_what_is_due(now)
            if self._signals:
                self._heard = now
                return self._signals.popleft()
            if now - self._heard >= self._quiet_seconds:
                silent, self._heard = now - self._heard, now
                return Quiet(now, silent)
            if not self._actors and not self._joins:
                self._check_that_all_left_as_planned()
                return None
            timeout = max(0.0, self._next_time() - self._now())
            if self._calls:
                self._take_in_what_is_ready(1, timeout)
            else:
                time.sleep(timeout)
        return None

    def has_more(self) -> bool:
        """Whether a client has said something already, or is late."""
        self._note_what_is_due(self._now())
        if not self._signals and self._calls:
            self._take_in_what_is_ready(len(self._calls), 0.0)
        return bool(self._signals)

    def close(self) -> None:
        """End the clients' processes, whatever they are doing."""
        self._calls.clear()
        for name in list(self._actors):
            self._end(name)

    def _now(self) -> float:
        if self._began is None:
            self._began = time.monotonic() - self._begins
        return time.monotonic() - self._began

    def _make_actor(self, name: str) -> Actor:
        actor = Actor(ClientProcess, self._clients[name], self._cpus)
        self._actors[name] = actor
        return actor

    def _end(self, name: str) -> None:
        self._actors.pop(name).end()

    def _note_what_is_due(self, now: float) -> None:
        """Turn what is due by now into signals: joins, leaves, ends of pauses, missed deadlines."""
        # A client joins again only after its leaving was reported.
        while not self._signals and self._joins and self._joins[0].joins <= now:
            stay = self._joins.pop(0)
            self._here[stay.client_id] = stay
            self._begin(stay.client_id, now)
        for stay in [stay for stay in self._here.values() if stay.leaves <= now]:
            del self._here[stay.client_id]
            self._let_leave(stay, now)
        for name in [name for name, (ends, _) in self._pauses.items() if ends <= now]:
            _, deadline = self._pauses.pop(name)
            self._ask_to_be_ready(name, deadline)
        due = min((call.deadline for call in self._calls.values()), default=inf)
        if min(due, self._heard + self._quiet_seconds) <= now and self._calls:
            # A client that answered while the server was busy is not late.
            self._take_in_what_is_ready(len(self._calls), 0.0)
        for reference, call in list(self._calls.items()):
            if call.deadline <= now:
                del self._calls[reference]
                self._deadlines.missed(call.client_id)
                self._actors[call.client_id].restart()
                allowed = call.deadline - call.sent
                self._fail(call, f"no answer within {allowed:.1f} s, its deadline")

    def _begin(self, name: str, now: float) -> None:
        """Let a client join, at once if its process is ready."""
        if name not in self._actors:
            self._make_actor(name)
            self._ask_to_be_ready(name, now + START_SECONDS)
        elif name not in self._pauses and not any(
            c.client_id == name for c in self._calls.values()
        ):
            self._signals.append(Joining(now, name))

    def _let_leave(self, stay: Stay, now: float) -> None:
        """Let a client go, whether it is at work, starts again or waits; it may come back."""
        name = stay.client_id
        is_lost = name in self._pauses
        lost_round = None
        self._pauses.pop(name, None)
        for reference, call in list(self._calls.items()):
            if call.client_id == name:
                is_lost |= call.task is None
                if call.task is not None and stay.returns:
                    lost_round = call.task.round
                del self._calls[reference]
        self._end(name)
        if not is_lost:
            self._signals.append(Leaving(now, name, lost_round=lost_round))
        following = self._stays.after(name, max(now, stay.leaves))
        if following is None:
            return
        insort(self._joins, following, key=_joins)
        if stay.returns:
            self._make_actor(name)
            self._ask_to_be_ready(name, now + START_SECONDS)

    def _ask_to_be_ready(self, name: str, deadline: float) -> None:
        self._calls[self._actors[name].prepare()] = _Call(name, self._now(), deadline)

    def _next_time(self) -> float:
        """When something is due at the latest."""
        return min(
            self._seconds,
            self._heard + self._quiet_seconds,
            self._joins[0].joins if self._joins else inf,
            min((stay.leaves for stay in self._here.values()), default=inf),
            min((ends for ends, _ in self._pauses.values()), default=inf),
            min((call.deadline for call in self._calls.values()), default=inf),
        )

    def _take_in_what_is_ready(self, most: int, timeout: float) -> None:
        ready, _ = ray.wait(list(self._calls), num_returns=most, timeout=timeout)
        for reference in ready:
            self._take_in(reference)

    def _take_in(self, reference: Any) -> None:
        """Turn an answer into a signal. The reference ends here, which frees its memory."""
        call = self._calls.pop(reference)
        try:
            answer: Answer | Literal[True] | None = ray.get(reference)
        except RayActorError as error:
            self._lose(call, f"process lost: {in_one_line(error)}")
            return
        except RayError as error:
            self._fail(call, f"process cannot start: {in_one_line(error)}")
            return
        if answer is None:
            self._lose(call, "process lost, and started again before it had its task")
        elif answer is True:
            if call.client_id in self._here:  # else it is ready before it is back
                self._signals.append(Joining(self._now(), call.client_id))
        elif answer.update is None and answer.failure is None:
            assert call.task is not None
            self._failures[call.client_id] = 0
            self._signals.append(Losing(self._now(), call.client_id, call.task.round))
        elif answer.update is None:
            what, _, _ = str(answer.failure).partition("\n")
            self._fail(call, f"training failed: {what}")
        else:
            self._receive(call, answer.update, answer.busy_seconds)

    def _receive(self, call: _Call, update: ClientUpdate, busy_seconds: float) -> None:
        task = call.task
        assert task is not None
        asked = task.client_id, task.version, task.round
        if (update.client_id, update.version, update.round) not in (asked, (*asked[:2], None)):
            answered = f"{update.client_id!r}, version {update.version}, round {update.round}"
            self._fail(call, f"training failed: it answered another task, of {answered}")
            return
        now = self._now()
        apart = now - call.sent - call.imposed_seconds - busy_seconds
        self._failures[call.client_id] = 0
        self._deadlines.answered(call.client_id, task.epochs, busy_seconds, apart)
        self._signals.append(Arriving(now, update, now - call.sent))

    def _lose(self, call: _Call, reason: str) -> None:
        """Let Ray start a process again, and ask it until it is ready."""
        if call.task is not None:
            self._fail(call, reason)
        elif self._now() < call.deadline:
            self._pauses[call.client_id] = self._now() + FIRST_PAUSE_SECONDS, call.deadline
        else:
            self._give_up(call.client_id, f"not ready again within {START_SECONDS:g} s: {reason}")

    def _fail(self, call: _Call, reason: str) -> None:
        """Let a client that was at work leave, and join again after a pause; or give it up."""
        name, now = call.client_id, self._now()
        self._failures[name] += 1
        failures = self._failures[name]
        if failures >= MOST_FAILURES:
            reason = f"given up after {failures} failures in a row; the last: {reason}"
            self._give_up(name, reason)
            return
        pause = FIRST_PAUSE_SECONDS * 2 ** (failures - 1)
        self._pauses[name] = now + pause, now + pause + START_SECONDS
        if call.task is not None:
            self._signals.append(Leaving(now, name, reason))

    def _give_up(self, name: str, reason: str) -> None:
        self._end(name)
        self._here.pop(name, None)
        self._joins = [stay for stay in self._joins if stay.client_id != name]
        self._given_up = f"{name}: {reason}"
        self._signals.append(Leaving(self._now(), name, reason))

    def _check_that_all_left_as_planned(self) -> None:
        if self._given_up:
            raise ClusterError(f"no client is left; the last was given up: {self._given_up}")
