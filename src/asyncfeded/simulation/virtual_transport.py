"""The virtual clock as a transport: times of arrival are drawn, updates are trained."""

from collections.abc import Sequence
from math import inf, isfinite
from typing import NamedTuple

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.messages import TrainTask
from asyncfeded.core.vectors import read_only
from asyncfeded.runtime.devices import Devices
from asyncfeded.runtime.membership import Membership, Presence, Stay, Stays
from asyncfeded.runtime.saved import Saved
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Signal
from asyncfeded.simulation.clock import VirtualClock
from asyncfeded.simulation.workers import Workers


class _Round(NamedTuple):
    """A task under way, how long its client holds it, and why its update is lost, if it is."""

    task: TrainTask
    held_seconds: float
    lost: str | None


class VirtualTransport:
    """Clients on a virtual clock, from 0 to `seconds`.

    The time of an arrival is known when the task is sent: it depends on the devices' draws and on
    K, never on what training gives. So a task goes to the workers at once and its result is asked
    for when its time has come. With a `presence`, clients take part only while they are there: who
    goes away loses its round and joins again when it is back. With `resumed`, the state of an
    earlier process, the clock goes on from there.
    """

    def __init__(
        self,
        devices: Devices,
        workers: Workers,
        memberships: Sequence[Membership],
        seconds: float,
        presence: Presence | None = None,
        resumed: Saved | None = None,
    ) -> None:
        require(isfinite(seconds) and seconds > 0, "seconds", "a finite number above 0", seconds)
        self._devices = devices
        self._workers = workers
        self._seconds = seconds
        self._stays = Stays(memberships, presence)
        self._leaves: dict[str, float] = {}
        self._cut_off: dict[str, int] = {}
        """Rounds that cannot end before their clients leave."""
        self._clock = VirtualClock[_Round | Joining | Stay]()
        if resumed is not None:
            self._go_on(resumed)
            return
        for stay in self._stays:
            self._expect(stay)

    def state(self) -> Saved:
        """The time, everything to come, and the tasks under way; training is not saved."""
        return {
            "now": self._clock.now,
            "coming": [[seconds, *_saved(event)] for seconds, event in self._clock.coming()],
            "leaves": self._leaves,
            "cut_off": self._cut_off,
        }

    def _go_on(self, state: Saved) -> None:
        """Expect what was to come, and train again what was trained ahead."""
        self._clock.now = state["now"]
        self._leaves, self._cut_off = dict(state["leaves"]), dict(state["cut_off"])
        for seconds, kind, *fields in state["coming"]:
            match kind:
                case "joining":
                    self._clock.schedule(seconds, Joining(seconds, *fields))
                case "stay":
                    self._clock.schedule(seconds, Stay(*fields))
                case _:
                    *of_task, held_seconds, lost = fields
                    task = TrainTask(*of_task)
                    task = task._replace(parameters=read_only(task.parameters))
                    self._under_way(seconds, _Round(task, held_seconds, lost))

    def _expect(self, stay: Stay) -> None:
        self._clock.schedule(stay.joins, Joining(stay.joins, stay.client_id))
        if isfinite(stay.leaves):
            self._leaves[stay.client_id] = stay.leaves
            self._clock.schedule(stay.leaves, stay)

    def send(self, task: TrainTask) -> None:
        """Draw when the client is heard of again.

        The task is trained ahead, unless its update is lost or run or stay end before.
        """
        begins, name = self._clock.now, task.client_id
        time = self._devices.round_time(
            name, task.round, task.epochs, task.parameters.nbytes, begins
        )
        total = time.total
        if not total >= 0:  # nor NaN
            raise SettingError(
                f"devices must give rounds of at least 0 seconds; given {total} for round "
                f"{task.round} of client {name!r}"
            )
        arrives = begins + total
        if arrives >= self._leaves.get(name, inf):
            self._cut_off[name] = task.round
            return
        self._under_way(arrives, _Round(task, total, time.reason if time.lost else None))

    def _under_way(self, arrives: float, round_: _Round) -> None:
        self._clock.schedule(arrives, round_)
        if round_.lost is None and arrives <= self._seconds:
            self._workers.submit(round_.task, due=arrives)

    def next_signal(self) -> Signal | None:
        """Go to the next thing that happens; None when it lies beyond the end."""
        seconds = self._clock.peek()
        if seconds is None or seconds > self._seconds:
            return None
        event = self._clock.pop()
        match event:
            case _Round(task, held_seconds, None):
                return Arriving(seconds, self._workers.result(task), held_seconds)
            case _Round(task, _, reason):
                assert reason is not None
                return Losing(seconds, task.client_id, task.round, reason)
            case Stay():
                return self._end(event)
            case Joining():
                return event

    def _end(self, stay: Stay) -> Leaving:
        """Let a client leave, and expect it again if it comes back."""
        name, now = stay.client_id, stay.leaves
        del self._leaves[name]
        cut_off = self._cut_off.pop(name, None)
        following = self._stays.after(name, now)
        if following is not None:
            self._expect(following)
        return Leaving(now, name, lost_round=cut_off if stay.returns else None)

    def close(self) -> None:
        """End all training."""
        self._workers.close()


def _saved(event: _Round | Joining | Stay) -> tuple[object, ...]:
    """An event to come as plain data."""
    match event:
        case _Round(task, held_seconds, lost):
            return ("round", *task, held_seconds, lost)
        case Joining(client_id=name):
            return "joining", name
        case Stay():
            return ("stay", *event)
