"""Which of two values of a metric is the better one."""

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.metrics import LOSS, Goal
from asyncfeded.runtime.events import Evaluated


def goal_of(metric: str, goal: Goal | None) -> Goal:
    """The goal as given; otherwise loss is to be low and everything else high."""
    require(goal in (None, "max", "min"), "goal", "'max', 'min' or none", goal)
    return goal or ("min" if metric == LOSS else "max")


def value_of(event: Evaluated, metric: str) -> float:
    """One metric of an evaluation."""
    if metric not in event.metrics:
        raise SettingError(
            f"metric must be one that is measured, {', '.join(event.metrics)}; given {metric!r}"
        )
    return event.metrics[metric]
