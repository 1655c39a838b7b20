"""Clients that are there for a part of every day, such as phones that charge at night."""

from dataclasses import dataclass
from math import floor

from asyncfeded import randomness
from asyncfeded.runtime.membership import Period

DAY_SECONDS = 86400.0


@dataclass(frozen=True, slots=True)
class DailyPeriods:
    """The periods of one client: one every day, which begins and ends a little off its time.

    In units of a day, day d is from d + zone + j_d to d + zone + share + j'_d, with j and j' drawn
    from U(−jitter, jitter). Nothing is stored: each day has a draw of its own.
    """

    client_id: str
    seed: int
    zone: float
    share: float
    jitter: float
    day_seconds: float

    def upcoming(self, seconds: float) -> Period:
        """The period around this time, or the next one."""
        # Jitter is less than half of what lies between two periods, so they stay in order.
        day = floor(seconds / self.day_seconds - self.zone - self.share - self.jitter)
        while (period := self._on(day)).end <= seconds:
            day += 1
        return period

    def _on(self, day: int) -> Period:
        draw = randomness.passing_generator(self.seed, "availability", self.client_id, day)
        early, late = draw.uniform(-self.jitter, self.jitter, 2)
        start = day + self.zone + early
        end = day + self.zone + self.share + late
        return Period(start * self.day_seconds, end * self.day_seconds)
