"""What a tracker records of a run: points of its figures, few enough to draw.

A run has far more updates than a curve can show. The updates between two evaluations make one
point, their mean; so figures are drawn as finely as accuracy is, whatever the number of updates.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from asyncfeded.core.errors import require
from asyncfeded.core.messages import Receipt
from asyncfeded.runtime.events import Evaluated, Event, Received, RoundLost
from asyncfeded.runtime.saved import Saved


class Point(NamedTuple):
    """Figures by name at one version of the model, and the run's seconds then."""

    seconds: float
    version: int
    values: Mapping[str, float]


class Figures:
    """Makes points from events.

    A point of an evaluation, at the version that was measured:

    - `test/accuracy`, `test/loss` and every other metric;
    - `run/seconds`.

    A point of the updates since the evaluation before, at the version after the last of them:

    - `update/staleness`, `update/learning_rate`, `update/lag`, `update/delta_norm`,
      `update/epochs` (K) and every other figure of the rule: the mean over the accepted updates;
    - `update_epochs/CLIENT`: the same for K of one client, for the first `clients` that send one;
    - `run/updates`, `refused/REASON`, `lost_rounds/REASON`: how many there were so far.
    """

    def __init__(self, clients: int) -> None:
        require(clients >= 0, "clients", "at least 0", clients)
        self._clients = clients
        self._drawn: set[str] = set()
        self._sums: dict[str, float] = {}
        self._terms: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._news = False
        self._seconds = 0.0
        self._version = 1

    def of(self, event: Event) -> Iterator[Point]:
        """Note an event; yield the points that it completes."""
        match event:
            case Received(receipt=receipt):
                self._seconds, self._version, self._news = event.seconds, receipt.version, True
                if receipt.accepted:
                    self._counts["run/updates"] += 1
                    self._add(receipt, event.epochs)
                elif receipt.reason is not None:
                    self._counts[f"refused/{receipt.reason.value}"] += 1
            case RoundLost(seconds, _, _, reason, version):
                self._seconds, self._version, self._news = seconds, version, True
                self._counts[f"lost_rounds/{reason}"] += 1
            case Evaluated(seconds, version, metrics):
                yield from self.rest()
                measured = {f"test/{name}": float(value) for name, value in metrics.items()}
                yield Point(seconds, version, {**measured, "run/seconds": seconds})
            case _:
                pass

    def rest(self) -> Iterator[Point]:
        """Yield the point of the updates since the last one, if there were any."""
        if self._news:
            means = {name: total / self._terms[name] for name, total in self._sums.items()}
            yield Point(self._seconds, self._version, {**means, **self._counts})
            self._sums.clear()
            self._terms.clear()
            self._news = False

    def state(self) -> Saved:
        """What the next point is made of."""
        return {
            "drawn": sorted(self._drawn),
            "sums": dict(self._sums),
            "terms": dict(self._terms),
            "counts": dict(self._counts),
            "last": [self._news, self._seconds, self._version],
        }

    def restore(self, state: Saved) -> None:
        """Go on with the point that an earlier process had begun."""
        self._drawn, self._sums = set(state["drawn"]), dict(state["sums"])
        self._terms, self._counts = Counter(state["terms"]), Counter(state["counts"])
        self._news, self._seconds, self._version = state["last"]

    def _add(self, receipt: Receipt, epochs: int | None) -> None:
        for name, value in receipt.figures.items():
            self._note(f"update/{name}", value)
        self._note("update/lag", receipt.lag)
        self._note("update/delta_norm", receipt.delta_norm)
        self._note("update/epochs", epochs)
        if len(self._drawn) < self._clients:
            self._drawn.add(receipt.client_id)
        if receipt.client_id in self._drawn:
            self._note(f"update_epochs/{receipt.client_id}", epochs)

    def _note(self, name: str, value: float | None) -> None:
        if value is not None:
            self._sums[name] = self._sums.get(name, 0.0) + float(value)
            self._terms[name] += 1
