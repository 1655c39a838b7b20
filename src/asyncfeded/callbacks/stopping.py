"""End a run early: when a metric is good enough, or after some updates."""

from asyncfeded.callbacks.goals import goal_of, value_of
from asyncfeded.core.errors import require
from asyncfeded.core.metrics import Goal
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Evaluated, Event, Received


class StopAt:
    """Stop a run once a metric has reached a value.

    A metric with the goal "max" must be at least `value`, one with the goal "min" at most. Without
    a goal, loss is to be low and everything else high.

        federate(model, datasets, callbacks=[StopAt("accuracy", 0.9)])
    """

    def __init__(self, metric: str, value: float, goal: Goal | None = None) -> None:
        self._metric = metric
        self._value = value
        self._goal = goal_of(metric, goal)

    def __call__(self, event: Event, run: Run) -> None:
        """Look at an evaluation."""
        if isinstance(event, Evaluated):
            found = value_of(event, self._metric)
            if found >= self._value if self._goal == "max" else found <= self._value:
                run.stop(f"StopAt({self._metric!r}, {self._value:g})")


class StopAfter:
    """Stop a run once the server has accepted this many updates."""

    def __init__(self, updates: int) -> None:
        require(updates >= 1, "updates", "at least 1", updates)
        self._updates = updates

    def __call__(self, event: Event, run: Run) -> None:
        """Look at the number of updates."""
        if isinstance(event, Received) and run.updates >= self._updates:
            run.stop(f"StopAfter(updates={self._updates})")
