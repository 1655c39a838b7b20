"""What runs are compared by: a metric, and whether high or low is better."""

from dataclasses import dataclass

from asyncfeded.core.metrics import ACCURACY, Goal
from asyncfeded.result import Result


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A metric and its goal, "max" or "min"."""

    metric: str
    goal: Goal

    @property
    def sign(self) -> float:
        """The factor that makes better values higher."""
        return 1.0 if self.goal == "max" else -1.0

    def best_of(self, run: Result) -> float | None:
        """The best value that was measured in a run."""
        return run.best(self.metric, self.goal)

    def final_of(self, run: Result) -> float | None:
        """The last value that was measured."""
        return next(reversed(run.metric(self.metric)), None)

    def seconds_to(self, run: Result, target: float | None) -> float | None:
        """When the metric was first as good as the target; None if it never was."""
        return None if target is None else run.seconds_to(self.metric, target, self.goal)

    def t90_of(self, run: Result) -> float | None:
        """When 90 % of the run's own maximum was first reached; a minimum has no such time."""
        return run.seconds_to_90(self.metric) if self.goal == "max" else None

    @property
    def form(self) -> str:
        """How values are formatted in a table."""
        return ".2%" if self.metric == ACCURACY else ".4g"

    def named(self, target: float) -> str:
        """A target as a heading has it."""
        return f"{100 * target:g} %" if self.metric == ACCURACY else f"{self.metric} {target:g}"
