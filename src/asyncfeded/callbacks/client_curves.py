"""The clients' own accuracies over time, as percentiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.metrics import ACCURACY
from asyncfeded.files import write_table
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Evaluated, Event
from asyncfeded.runtime.saved import Saved


@dataclass(frozen=True, slots=True)
class ClientPoint:
    """Percentiles of a metric over the clients at one time."""

    seconds: float
    version: int
    values: tuple[float, ...]


class ClientCurves:
    """Measure the model on each client's own test examples, and keep percentiles over the clients.

    Asynchronous training favours fast clients; `curve` shows how much, over time. The clients are
    measured every `every` seconds, which costs as much as one evaluation.
    """

    def __init__(
        self,
        every: float = 10.0,
        metric: str = ACCURACY,
        percentiles: Sequence[float] = (5, 25, 50, 75, 95),
    ) -> None:
        require(every > 0, "every", "above 0", every)
        within = all(0 <= percentile <= 100 for percentile in percentiles)
        require(bool(percentiles) and within, "percentiles", "from 0 to 100", percentiles)
        self._every = every
        self._metric = metric
        self._next = 0.0
        self.percentiles = tuple(percentiles)
        self.curve: list[ClientPoint] = []

    def __call__(self, event: Event, run: Run) -> None:
        """Measure the clients if it is time to."""
        if not isinstance(event, Evaluated) or event.seconds < self._next:
            return
        self._next = event.seconds + self._every
        measured = [of.get(self._metric) for of in run.measure_clients().values()]
        known = [value for value in measured if value is not None]
        if not known:
            raise SettingError(
                f"ClientCurves needs test examples of each client, measured by {self._metric!r}: "
                "leave test out, or pass test as a mapping by client"
            )
        values = tuple(map(float, np.percentile(known, self.percentiles)))
        self.curve.append(ClientPoint(event.seconds, event.version, values))

    def state(self) -> Saved:
        """The curve so far, and when the clients are measured next."""
        points = [[point.seconds, point.version, list(point.values)] for point in self.curve]
        return {"next": self._next, "curve": points}

    def restore(self, state: Saved) -> None:
        """Go on with the curve of an earlier process."""
        self._next = float(state["next"])
        self.curve = [ClientPoint(at, version, tuple(of)) for at, version, of in state["curve"]]

    def to_csv(self, path: str | Path) -> None:
        """Write the curve: a line per time, a column per percentile."""
        headings = ["seconds", "version", *(f"p{percentile:g}" for percentile in self.percentiles)]
        rows = ((point.seconds, point.version, *point.values) for point in self.curve)
        write_table(Path(path), headings, rows)
