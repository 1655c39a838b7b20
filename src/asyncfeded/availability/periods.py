"""A client's recorded periods, once or again and again."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from math import inf

from asyncfeded.runtime.membership import Period

LEAST_CYCLE_SECONDS = 1.0
"""Periods begin again after this time at least: with each, clients may come and go."""


class RecordedPeriods:
    """The periods of one client; with a `cycle`, they begin again after that many seconds.

    A period may reach beyond the end of a cycle, and then also covers the beginning of the first.
    Periods that overlap or touch are one.
    """

    __slots__ = ("_cycle", "_ends", "_starts")

    def __init__(self, periods: Iterable[tuple[float, float]], cycle: float = inf) -> None:
        merged = _merged(_within(periods, cycle))
        self._cycle = cycle
        self._starts = array("d", [start for start, _ in merged])
        self._ends = array("d", [end for _, end in merged])

    def upcoming(self, seconds: float) -> Period | None:
        """The period around this time, or the next one."""
        if not self._starts:
            return None
        if self._cycle == inf:
            place = bisect_right(self._ends, seconds)
            return self._period(place, 0.0) if place < len(self._ends) else None
        number, within = divmod(seconds, self._cycle)
        place = bisect_right(self._ends, within)
        while True:
            if place == len(self._ends):
                number, place = number + 1, 0
            period = self._period(place, number * self._cycle)
            if period.end > seconds:  # a rounding error before, it is over already
                return self._beyond_the_cycle(period, place, number)
            place += 1

    def _period(self, place: int, begins: float) -> Period:
        return Period(begins + self._starts[place], begins + self._ends[place])

    def _beyond_the_cycle(self, period: Period, place: int, number: float) -> Period:
        """The period with what follows it at once in the next cycle."""
        goes_on = self._ends[place] == self._cycle and self._starts[0] == 0.0
        if not goes_on:
            return period
        if place == 0:  # it fills the cycle
            return Period(period.start, inf)
        return Period(period.start, self._period(0, (number + 1) * self._cycle).end)


def _within(periods: Iterable[tuple[float, float]], cycle: float) -> list[tuple[float, float]]:
    """The periods as they lie in one cycle."""
    if cycle == inf:
        return list(periods)
    parts = []
    for start, end in periods:
        if end - start >= cycle:
            return [(0.0, cycle)]
        first = start % cycle
        last = first + (end - start)
        parts.append((first, min(last, cycle)))
        if last > cycle:
            parts.append((0.0, last - cycle))
    return parts


def _merged(periods: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(periods):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return merged
