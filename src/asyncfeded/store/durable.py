"""A transport whose signals are safe on the disk before their clients hear what became of them.

    signal ──▶ journal ──▶ server ──▶ task …held… ──▶ client
                  └──────── sync ───────┘

The journal holds what happened, and the server is a function of it: the same signals give the same
bits. So a signal is written down before the server hears it, and the tasks that answer it are held
until it is safe. While there are further signals, these are taken in meanwhile, and one sync
serves all of them.

After a crash, the signals that the journal has are handled again; nothing is sent. A client that
took part may then send its update, or begin anew: when it joins, its round of before is lost, and
it goes on with the same K. If it does neither for a long time, it has left.
"""

from collections import deque
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from asyncfeded.core.messages import TrainTask
from asyncfeded.core.server import Server
from asyncfeded.runtime.transport import (
    Arriving,
    Joining,
    Leaving,
    Losing,
    Quiet,
    Signal,
    Transport,
)
from asyncfeded.store.disk import Buffer
from asyncfeded.store.signals import encoded_in_pieces, plain_update

RESTARTED = "server_restarted"
"""Why a round was lost: the server's process ended in the middle of it."""
NOT_BACK = "not back after the server's restart"
"""Why a client has left: its server restarted, and it was not heard of for a long time."""
RETURN_SECONDS = 300.0
"""How long a restarted server waits for a client that took part: nothing is to wait for ever."""
MOST_HELD = 256
"""Tasks that wait for the disk at once; then the next signal waits, too."""


class Records(Protocol):
    """Where signals are written: a `Journal`, or a `GroupCommit` with a thread that writes."""

    @property
    def committed(self) -> int:
        """The number of the last record that is safe."""

    def append(self, *content: Buffer) -> int:
        """Write a record, in any number of pieces, and give its number.

        The pieces must not change before the record is safe.
        """

    def wait_for(self, number: int) -> None:
        """Wait until this record and all before it are safe."""


@runtime_checkable
class HasMore(Protocol):
    """A transport that can say without waiting whether there is another signal."""

    def has_more(self) -> bool:
        """Whether `next_signal` would return at once."""


class Durable:
    """Carries tasks and signals over `inner`, and keeps the signals in `records`.

    `replayed` are the signals that an earlier process has kept and that `server` has not heard.
    """

    def __init__(
        self,
        inner: Transport,
        records: Records,
        server: Server,
        replayed: Iterable[Signal] = (),
    ) -> None:
        self._inner = inner
        self._records = records
        self._server = server
        self._replayed = iter(replayed)
        self._replaying = True
        self._absent: set[str] = set()
        """Who took part before the restart and has not come back."""
        self._awaited_until: float | None = None
        self._heard: deque[Signal] = deque()
        """Signals that come before the next one of `inner`."""
        self._held: deque[tuple[int, TrainTask]] = deque()
        self._number = 0

    @property
    def replaying(self) -> bool:
        """Whether signals of an earlier process are still to be handled again."""
        return self._replaying

    def send(self, task: TrainTask) -> None:
        """Send a task once the signal that it answers is safe."""
        if not self._replaying and task.client_id not in self._absent:
            self._held.append((self._number, task))

    def next_signal(self) -> Signal | None:
        """Handle again what the journal has; then wait for the next signal and write it down."""
        if self._replaying:
            signal = next(self._replayed, None)
            if signal is not None:
                return signal
            self._replaying = False
            self._absent = set(self._server.clients)
        signal = self._meant()
        if signal is not None and not isinstance(signal, Quiet):
            self._number = self._records.append(*encoded_in_pieces(signal))
        return signal

    def close(self) -> None:
        """End the inner transport."""
        self._inner.close()

    def _meant(self) -> Signal | None:
        """The next signal as it is to be written down and handled."""
        while True:
            match signal := self._heard.popleft() if self._heard else self._listen():
                case Joining(seconds, name) if name in self._absent:
                    self._absent.remove(name)
                    number = self._server.round_of(name)
                    if number is not None:
                        return Losing(seconds, name, number, RESTARTED)
                    # It waits for the end of a round: it is as it should be.
                case Arriving(seconds, update, held_seconds):
                    plain = plain_update(update, self._server.parameters.size)
                    self._absent.discard(plain.client_id)  # it is there, and awaits an answer
                    return Arriving(seconds, plain, held_seconds)
                case Leaving(_, name) | Losing(_, name):
                    self._absent.discard(name)
                    return signal
                case _:
                    return signal

    def _listen(self) -> Signal | None:
        """Wait for the next signal; who has not come back in time has left."""
        self._send_what_is_safe()
        signal = self._inner.next_signal()
        if signal is None:
            self._send_what_is_safe(all_of_it=True)
        elif self._absent:
            if self._awaited_until is None:
                self._awaited_until = signal.seconds + RETURN_SECONDS
            if signal.seconds >= self._awaited_until:
                gone = [name for name in self._server.clients if name in self._absent]
                self._heard.extend(Leaving(signal.seconds, name, NOT_BACK) for name in gone)
                self._heard.append(signal)
                return self._heard.popleft()
        return signal

    def _send_what_is_safe(self, all_of_it: bool = False) -> None:
        """Send the tasks whose signals are safe; wait for it if nothing else is to be done."""
        while self._held:
            number, task = self._held[0]
            if number > self._records.committed:
                if self._has_more() and len(self._held) < MOST_HELD and not all_of_it:
                    return
                self._records.wait_for(number)
            self._held.popleft()
            self._inner.send(task)

    def _has_more(self) -> bool:
        return isinstance(self._inner, HasMore) and self._inner.has_more()
