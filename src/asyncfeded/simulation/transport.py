"""The virtual clock as a transport: who arrives when is drawn, what they bring is trained."""

from collections.abc import Sequence
from math import inf, isfinite
from typing import NamedTuple

from asyncfeded.core.errors import require
from asyncfeded.core.messages import TrainTask
from asyncfeded.runtime.devices import Devices
from asyncfeded.runtime.membership import Membership, check_memberships
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Signal
from asyncfeded.simulation.clock import VirtualClock
from asyncfeded.simulation.workers import Workers


class _Round(NamedTuple):
    """A task under way, how long its client holds it, and whether its update is lost."""

    task: TrainTask
    held_seconds: float
    lost: bool


class VirtualTransport:
    """Clients on a virtual clock, from 0 to `seconds`.

    The time of an arrival is known when the task is sent: it depends on the device model's draws
    and on K, never on what training gives. So a task goes to the workers at once and its result
    is asked for when its time has come.
    """

    def __init__(
        self,
        devices: Devices,
        workers: Workers,
        memberships: Sequence[Membership],
        seconds: float,
    ) -> None:
        require(isfinite(seconds) and seconds > 0, "seconds", "a finite number above 0", seconds)
        check_memberships(memberships)
        self._devices = devices
        self._workers = workers
        self._seconds = seconds
        self._leaves = {
            client.client_id: client.leave_seconds
            for client in memberships
            if isfinite(client.leave_seconds)
        }
        self._clock = VirtualClock[_Round | Joining | Leaving]()
        for client in memberships:
            name, joins, leaves = client.client_id, client.join_seconds, client.leave_seconds
            self._clock.schedule(joins, Joining(joins, name))
            if isfinite(leaves):
                self._clock.schedule(leaves, Leaving(leaves, name))

    def send(self, task: TrainTask) -> None:
        """Draw when the client is heard of again.

        The task is trained ahead, unless its update is lost or run or client end before.
        """
        time = self._devices.round_time(
            task.client_id, task.round, task.epochs, task.parameters.nbytes
        )
        arrives = self._clock.now + time.total
        self._clock.schedule(arrives, _Round(task, time.total, time.lost))
        if time.lost:
            return
        if arrives <= self._seconds and arrives < self._leaves.get(task.client_id, inf):
            self._workers.submit(task, due=arrives)

    def next_signal(self) -> Signal | None:
        """Go to the next thing that happens; None when it lies beyond the end."""
        while (seconds := self._clock.peek()) is not None and seconds <= self._seconds:
            event = self._clock.pop()
            match event:
                case _Round(task) if seconds >= self._leaves.get(task.client_id, inf):
                    pass
                case _Round(task, _, lost=True):
                    return Losing(seconds, task.client_id, task.round)
                case _Round(task, held_seconds):
                    return Arriving(seconds, self._workers.result(task), held_seconds)
                case Joining() | Leaving():
                    return event
        return None

    def close(self) -> None:
        """End all training."""
        self._workers.close()
