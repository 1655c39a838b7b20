"""A thread that runs when chance lets it: one of two at a time, in the same way for a seed.

It stands for the condition and the thread of a `GroupCommit`. Real threads run at once; what one
can see of the other is what it can see here, between two calls of the disk.
"""

from collections.abc import Callable

from greenlet import getcurrent, greenlet

from faults.chance import Chance, InvariantError

MOST_TURNS = 10_000


class Turns:
    """Condition, thread and scheduler; `perhaps` gives the other thread a turn."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._main = getcurrent()
        self._other: greenlet | None = None

    # As a condition -----------------------------------------------------------------------

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        pass

    def wait_for(self, holds: Callable[[], bool]) -> bool:
        for _ in range(MOST_TURNS):
            if holds():
                return True
            if not self._other:  # neither before its first turn nor after its last
                break
            self._switch(self._other)
        raise InvariantError("a thread waits for ever")

    def notify_all(self) -> None:
        pass

    # As a thread --------------------------------------------------------------------------

    def make_thread(self, target: Callable[[], None], **_: object) -> "Turns":
        self._other = greenlet(target)
        return self

    def start(self) -> None:
        assert self._other is not None
        self._other.switch()  # up to where it waits

    def join(self) -> None:
        self.wait_for(lambda: not self._other)

    # As a scheduler -----------------------------------------------------------------------

    def perhaps(self) -> None:
        """Let the other thread run for a while, if chance says so."""
        if self._other and self._chance.random.random() < 0.3:
            self._switch(self._other)

    def _switch(self, other: greenlet) -> None:
        (self._main if getcurrent() is other else other).switch()
