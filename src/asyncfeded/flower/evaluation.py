"""Measuring a model while training goes on: on the server's own data, and on clients' data."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import isfinite

from asyncfeded import randomness
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation

PREFIX = "federated_"
"""Begins the names of what clients have measured."""
CLIENTS = f"{PREFIX}clients"


@dataclass(slots=True, eq=False)
class AskedClients:
    """An evaluation by clients: whom it was sent to, and what they have measured until now."""

    parameters: Vector
    number: int
    awaited: set[str] | None = None
    """Who has yet to answer; None before anybody was asked, since nobody was there."""
    answers: list[tuple[float, dict[str, float]]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nobody has yet to answer."""
        return self.awaited is not None and not self.awaited

    def answered(self, client_id: str, answer: tuple[float, dict[str, float]] | None) -> None:
        """Note an answer; None for a client that will not answer, or not with sense."""
        if self.awaited is not None:
            self.awaited.discard(client_id)
        if answer is not None:
            self.answers.append(answer)

    def metrics(self) -> dict[str, float]:
        """The mean of every metric over those who have measured it, weighted by their examples."""
        sums: dict[str, float] = defaultdict(float)
        weights: dict[str, float] = defaultdict(float)
        for weight, measured in self.answers:
            for name, value in measured.items():
                if isfinite(value):
                    sums[name] += weight * value
                    weights[name] += weight
        means = {f"{PREFIX}{name}": sums[name] / weights[name] for name in sorted(sums)}
        return {**means, CLIENTS: float(len(self.answers))}


@dataclass(frozen=True, slots=True)
class Piece:
    """A client's part in an evaluation."""

    evaluation: AskedClients
    client_id: str


def drawn(clients: Sequence[str], count: int, seed: int, number: int) -> list[str]:
    """At most `count` of these clients, drawn by the number of the evaluation."""
    draw = randomness.generator(seed, "evaluating clients", "", number)
    ordered = sorted(clients)
    places = draw.permutation(len(ordered))[:count]
    return [ordered[place] for place in sorted(places)]


class UnderWay:
    """An evaluation under way; `wait` goes on with it until the clients have answered."""

    def __init__(
        self,
        measured: "Future[Evaluation] | None",
        asked: AskedClients | None,
        wait: Callable[[AskedClients], None],
    ) -> None:
        self._measured = measured
        self._asked = asked
        self._wait = wait

    def ready(self) -> bool:
        """Whether all has been measured."""
        here = self._measured is None or self._measured.done()
        return here and (self._asked is None or self._asked.done)

    def __call__(self) -> Evaluation:
        """Wait for what is still missing."""
        metrics: dict[str, float] = {}
        if self._asked is not None:
            self._wait(self._asked)
            metrics |= self._asked.metrics()
        if self._measured is not None:
            metrics = {**self._measured.result().metrics, **metrics}
        return Evaluation(metrics)
