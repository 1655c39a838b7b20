"""Choosing who is at work by a seeded draw."""

from collections.abc import Sequence
from math import inf

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.core.errors import require
from asyncfeded.runtime.membership import Presence
from asyncfeded.runtime.saved import Saved

DRAWS_AT_ONCE = 1024
MOST_ASKED = 1000
"""How many clients are drawn at most for one choice."""


class UniformSelection:
    """Draw the next client uniformly: from those at rest and the one that has just reported.

    Clients at rest stand in a line, of which only the changed places are stored. So a choice takes
    the same time for any number of clients, and memory grows with the choices made.

    With a `presence`, a client that is away is drawn again. After 1,000 such draws, the client that
    returns first is chosen: among all at rest or, if these are more than 1,000, among those drawn.
    """

    def __init__(
        self, names: Sequence[str], at_work: int, seed: int = 0, presence: Presence | None = None
    ) -> None:
        whole = isinstance(at_work, int)
        limit = f"a whole number from 1 to {len(names)}, the clients"
        require(whole and 1 <= at_work <= len(names), "at_work", limit, at_work)
        self._names = names
        self._at_work = at_work
        self._seed = seed
        self._presence = presence
        self._resting = len(names)
        self._moved: dict[int, str] = {}
        self._drawn = 0
        self._draws: npt.NDArray[np.float64] = np.empty(0)

    def first(self) -> list[str]:
        """Draw those who begin."""
        return [self._take_out() for _ in range(self._at_work)]

    def after(self, client_id: str, seconds: float = 0.0) -> str:
        """Draw the next client; the one that has reported rests unless it is drawn again."""
        self._moved[self._resting] = client_id  # it stands last in the line while one is drawn
        place = self._chosen(self._resting + 1, seconds)
        del self._moved[self._resting]
        if place == self._resting:
            return client_id
        chosen = self._standing_at(place)
        self._moved[place] = client_id
        return chosen

    def state(self) -> Saved:
        """Who stands where in the line, and how often was drawn."""
        return {
            "resting": self._resting,
            "drawn": self._drawn,
            "places": np.array(list(self._moved), dtype=np.int64),
            "names": list(self._moved.values()),
        }

    def restore(self, state: Saved) -> None:
        """Go on with the line as it was."""
        self._resting, self._drawn = state["resting"], state["drawn"]
        self._moved = dict(zip(state["places"].tolist(), state["names"], strict=True))
        if self._drawn % DRAWS_AT_ONCE:
            self._draw_stretch(self._drawn // DRAWS_AT_ONCE)

    def _take_out(self) -> str:
        """Draw a client at rest; the last of the line fills its place."""
        place = self._chosen(self._resting, 0.0)
        self._resting -= 1
        chosen = self._standing_at(place)
        self._moved[place] = self._standing_at(self._resting)
        self._moved.pop(self._resting, None)
        return chosen

    def _chosen(self, count: int, seconds: float) -> int:
        """Draw one of the first `count` places, of a client that is there if possible."""
        place = self._place(count)
        if self._presence is None:
            return place
        asked = [place]
        while self._waits(place, seconds) > 0.0:
            if len(asked) == MOST_ASKED:
                among = asked if count > MOST_ASKED else range(count)
                return min(among, key=lambda place: self._waits(place, seconds))
            place = self._place(count)
            asked.append(place)
        return place

    def _waits(self, place: int, seconds: float) -> float:
        """How long it takes until the client in this place is there."""
        assert self._presence is not None
        there = self._presence.upcoming(self._standing_at(place), seconds)
        return inf if there is None else max(0.0, there.start - seconds)

    def _standing_at(self, place: int) -> str:
        name = self._moved.get(place)
        return self._names[place] if name is None else name

    def _place(self, count: int) -> int:
        """Draw one of the places 0 to count − 1."""
        number = self._drawn % DRAWS_AT_ONCE
        if number == 0:
            self._draw_stretch(self._drawn // DRAWS_AT_ONCE)
        self._drawn += 1
        return int(self._draws[number] * count)

    def _draw_stretch(self, stretch: int) -> None:
        draw = randomness.generator(self._seed, "selection", round_number=stretch)
        self._draws = draw.random(DRAWS_AT_ONCE)
