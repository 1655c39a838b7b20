"""A function of two variables, and arrows on it: what is drawn, and where the numbers stand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import atan2, cos, degrees, hypot, pi, sin

import numpy as np
import numpy.typing as npt

Point = tuple[float, float]

BADGE_SHARE = 0.062
"""The width of a step's number, as a share of the panel's."""
BADGE_ANGLES = 16
SHORT = 0.05
"""Arrows shorter than this share of the panel's width have a smaller head."""
SOLID, DASHED = "step of the server", "update as trained"


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one point to another; arrows of one `name` share a colour and a place in the legend.

    The `number` stands beside the arrow, the `label` along it; a browser tells what it is `about`.
    """

    name: str
    start: Point
    end: Point
    colour: str
    dashed: bool = False
    number: int | None = None
    label: str = ""
    about: str = ""

    @property
    def middle(self) -> Point:
        """Half-way."""
        return self.at(0.5)

    @property
    def length(self) -> float:
        """From its start to its end."""
        return hypot(self.end[0] - self.start[0], self.end[1] - self.start[1])

    @property
    def angle(self) -> float:
        """Its direction, anticlockwise from the x axis."""
        return atan2(self.end[1] - self.start[1], self.end[0] - self.start[0])

    @property
    def turned(self) -> float:
        """By how many degrees a text along it is turned so that it can be read."""
        return (degrees(self.angle) + 90) % 180 - 90

    def at(self, share: float) -> Point:
        """The point after this share of the way."""
        (x, y), (to_x, to_y) = self.start, self.end
        return x + share * (to_x - x), y + share * (to_y - y)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point with a name and a symbol: star or circle."""

    text: str
    at: Point
    symbol: str
    colour: str


@dataclass(frozen=True, slots=True)
class Landscape:
    """A function of two variables, `z` with a row for each `y`, and what is drawn on it."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    arrows: Sequence[Arrow]
    marks: Sequence[Mark]

    @property
    def width(self) -> float:
        """From the left edge to the right."""
        return float(self.x[-1] - self.x[0])

    def is_short(self, arrow: Arrow) -> bool:
        """Whether an arrow is too short for a head of the usual size."""
        return arrow.length < SHORT * self.width

    @property
    def colours(self) -> dict[str, str]:
        """The colour of every name."""
        return {arrow.name: arrow.colour for arrow in self.arrows}

    def numbers(self) -> list[tuple[Arrow, Point]]:
        """Where the numbers stand: near the middle of their arrows, away from all else."""
        size = BADGE_SHARE * self.width
        taken = [arrow.at(share) for arrow in self.arrows for share in np.linspace(0, 1, 17)]
        taken += [mark.at for mark in self.marks]
        placed: list[tuple[Arrow, Point]] = []
        for arrow in self.arrows:
            if arrow.number is not None:
                best = max(_around(arrow, size), key=lambda at: _room(at, size, taken, placed))
                placed.append((arrow, best))
        return placed


def _around(arrow: Arrow, size: float) -> Iterator[Point]:
    """Places for a number, the best first: beside the middle of the arrow, then farther away."""
    x, y = arrow.middle
    for distance in (0.7, 1.0, 1.4):
        for turn in range(BADGE_ANGLES):
            # Left and right of the arrow, then more and more to its front and back.
            angle = (
                arrow.angle
                + pi / 2
                + 2 * pi * (turn // 2 + turn % 2 * BADGE_ANGLES / 2) / BADGE_ANGLES
            )
            yield x + distance * size * cos(angle), y + distance * size * sin(angle)


def _room(
    at: Point, size: float, taken: Sequence[Point], placed: Sequence[tuple[Arrow, Point]]
) -> float:
    """How much of a number's own width is free around this place, at most all that it needs."""
    lines = min(hypot(at[0] - x, at[1] - y) / (0.65 * size) for x, y in taken)
    others = (hypot(at[0] - x, at[1] - y) / (1.1 * size) for _, (x, y) in placed)
    return min(1.0, lines, *others)
