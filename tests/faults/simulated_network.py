"""A network that drops, duplicates, reorders and delays, and a clock that jumps."""

from collections.abc import Callable
from dataclasses import replace

from asyncfeded.core.messages import TrainTask
from asyncfeded.runtime.transport import Quiet, Signal
from faults.chance import Chance
from faults.simulated_clients import Clients, Message

RATES = {
    "message dropped": 0.15,
    "message duplicated": 0.15,
    "message overtaken": 0.25,
    "message delayed": 0.2,
    "clock jumped": 0.02,
}
JUMPS = (-1000.0, -10.0, -1.0, 1.0, 10.0, 100.0)
MOST_UNDER_WAY = 60
QUIET_SHARE = 0.01
SLOWEST = 10_000


class SimulatedNetwork:
    """The transport of one life of the server, over clients that outlive it.

    `before_signal` is called before every signal and may raise to end the life; `told` with every
    task that leaves the server.
    """

    def __init__(
        self,
        chance: Chance,
        clients: Clients,
        under_way: list[Message],
        begins: float,
        before_signal: Callable[[], bool],
        told: Callable[[TrainTask], None],
    ) -> None:
        self._chance = chance
        self._clients = clients
        self._under_way = under_way
        self._clock = begins
        self._before_signal = before_signal
        self._told = told

    def send(self, task: TrainTask) -> None:
        """Let a task leave the server."""
        self._chance.tell("  task for", task.client_id, "round", task.round)
        self._told(task)
        self._under_way.append(task)

    def next_signal(self) -> Signal | None:
        """Let time pass until something reaches the server."""
        if not self._before_signal():
            return None
        for _ in range(SLOWEST):
            if (signal := self._step()) is not None:
                self._chance.tell("signal", signal)
                return signal
        raise AssertionError("nobody says anything any more")

    def has_more(self) -> bool:
        """Whether something may be on its way."""
        return len(self._under_way) > 0 and self._chance.random.random() < 0.5

    def close(self) -> None:
        """The server ends; what is under way stays so."""

    def _step(self) -> Signal | None:
        random = self._chance.random
        self._clock += random.random() if self._chance.enabled else 5.0
        if self._chance.strikes("clock jumped"):
            self._clock += random.choice(JUMPS)
        if random.random() < QUIET_SHARE:
            return Quiet(self._clock, 1.0)
        if self._under_way and random.random() < len(self._under_way) / 4:
            return self._deliver()
        self._clients.act()
        return None

    def _deliver(self) -> Signal | None:
        """Take the first message under way, or another; it arrives or not."""
        chance, under_way = self._chance, self._under_way
        late = len(under_way) > 1 and chance.strikes("message overtaken")
        message = under_way.pop(chance.random.randrange(1, len(under_way)) if late else 0)
        if chance.strikes("message dropped") or len(under_way) > MOST_UNDER_WAY:
            return None
        if chance.strikes("message delayed"):
            under_way.append(message)
            return None
        if chance.strikes("message duplicated"):
            under_way.append(message)
        if isinstance(message, TrainTask):
            self._clients.all[message.client_id].take(message)
            return None
        return replace(message, seconds=self._clock)


class SilentNetwork:
    """A network in which nobody says anything."""

    def send(self, task: TrainTask) -> None:
        """Lose a task."""

    def next_signal(self) -> Signal | None:
        """The run is over."""
        return None

    def close(self) -> None:
        """Nothing ends."""
