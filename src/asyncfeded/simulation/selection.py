"""Choosing who is at work by a seeded draw."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.core.errors import require

DRAWS_AT_ONCE = 1024


class UniformSelection:
    """Everybody who rests, and who has just reported, is as likely to be next.

    Those who rest stand in a line of which only the places that have changed are stored, so
    that a choice takes the same time, and memory grows with the choices made, for any number of
    clients.
    """

    def __init__(self, names: Sequence[str], at_work: int, seed: int = 0) -> None:
        whole = isinstance(at_work, int)
        limit = f"a whole number from 1 to {len(names)}, the clients"
        require(whole and 1 <= at_work <= len(names), "at_work", limit, at_work)
        self._names = names
        self._at_work = at_work
        self._seed = seed
        self._resting = len(names)
        self._moved: dict[int, str] = {}
        self._drawn = 0
        self._draws: npt.NDArray[np.float64] = np.empty(0)

    def first(self) -> list[str]:
        """Draw those who begin."""
        return [self._take_out() for _ in range(self._at_work)]

    def after(self, client_id: str) -> str:
        """Draw who is next; a client that has reported rests unless it is drawn again."""
        place = self._place(self._resting + 1)
        if place == self._resting:
            return client_id
        chosen = self._standing_at(place)
        self._moved[place] = client_id
        return chosen

    def _take_out(self) -> str:
        """Draw one who rests; the last of the line fills the gap."""
        place = self._place(self._resting)
        self._resting -= 1
        chosen = self._standing_at(place)
        self._moved[place] = self._standing_at(self._resting)
        self._moved.pop(self._resting, None)
        return chosen

    def _standing_at(self, place: int) -> str:
        name = self._moved.get(place)
        return self._names[place] if name is None else name

    def _place(self, count: int) -> int:
        """Draw one of the places 0 to count − 1."""
        number = self._drawn % DRAWS_AT_ONCE
        if number == 0:
            stretch = self._drawn // DRAWS_AT_ONCE
            draw = randomness.generator(self._seed, "selection", round_number=stretch)
            self._draws = draw.random(DRAWS_AT_ONCE)
        self._drawn += 1
        return int(self._draws[number] * count)
