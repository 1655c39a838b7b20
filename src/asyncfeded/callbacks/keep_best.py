"""Keep the best model of a run."""

from pathlib import Path

from asyncfeded.callbacks.goals import goal_of, value_of
from asyncfeded.core.metrics import ACCURACY, Goal
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Evaluated, Event
from asyncfeded.runtime.saved import Saved


class KeepBest:
    """Write the model of the best evaluation to a file of safetensors.

    The file holds exactly the version that was evaluated; load it with `load_model(module, path)`.
    `best` is the metric's value, `version` the number of that version; both are None before the
    first evaluation.
    """

    def __init__(self, path: str | Path, metric: str = ACCURACY, goal: Goal | None = None) -> None:
        self._path = Path(path)
        self._metric = metric
        self._goal = goal_of(metric, goal)
        self.best: float | None = None
        self.version: int | None = None

    def __call__(self, event: Event, run: Run) -> None:
        """Save the model if this evaluation is better than all before it."""
        if not isinstance(event, Evaluated):
            return
        found = value_of(event, self._metric)
        if self.best is None or (found > self.best if self._goal == "max" else found < self.best):
            run.save(self._path)
            self.best, self.version = found, event.version

    def state(self) -> Saved:
        """The best value so far, and its version."""
        return {"best": self.best, "version": self.version}

    def restore(self, state: Saved) -> None:
        """Go on with the best that an earlier process found; its file is still there."""
        self.best, self.version = state["best"], state["version"]
