"""The virtual clock: a heap of events to come."""

import heapq
from itertools import count
from typing import Generic, TypeVar

from asyncfeded.core.errors import SettingError

T = TypeVar("T")


class VirtualClock(Generic[T]):
    """Time that passes from one event to the next.

    Events of the same instant come out in the order in which they were scheduled, so runs
    repeat exactly.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def coming(self) -> list[tuple[float, T]]:
        """All events to come with their times, in the order in which they will happen."""
        return [(seconds, event) for seconds, _, event in sorted(self._heap)]

    def schedule(self, seconds: float, event: T) -> None:
        """Let `event` happen at `seconds`, which is not in the past."""
        if not seconds >= self.now:  # nor NaN
            raise SettingError(
                f"seconds must be at least {self.now}, the time now; given {seconds!r}"
            )
        heapq.heappush(self._heap, (seconds, next(self._order), event))

    def peek(self) -> float | None:
        """When the next event happens; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def pop(self) -> T:
        """Go to the next event and return it."""
        self.now, _, event = heapq.heappop(self._heap)
        return event
