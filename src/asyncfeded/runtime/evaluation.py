"""An evaluation: parameters go in, named numbers come out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from asyncfeded.core.vectors import Vector


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good a model is: a number per metric, such as accuracy and loss."""

    metrics: Mapping[str, float]


Measure = Callable[[Vector], Evaluation]
"""Measures parameters."""

Pending = Callable[[], Evaluation]
"""Waits for an evaluation under way."""


@runtime_checkable
class HasReady(Protocol):
    """A pending evaluation for which training never waits: while it runs, no other begins."""

    def ready(self) -> bool:
        """Whether the evaluation would be there at once."""


Evaluate = Callable[[Vector, float], Pending]
"""Begins to measure parameters at this time, perhaps in another process."""
