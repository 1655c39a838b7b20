"""What a run gives."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from asyncfeded.core.metrics import ACCURACY, LOSS, Goal
from asyncfeded.files import write_json, write_table
from asyncfeded.report import plots
from asyncfeded.runtime.events import Evaluated, Event, Finished, Left, Received, RoundLost, Started
from asyncfeded.runtime.saved import Saved
from asyncfeded.runtime.world import Clock
from asyncfeded.version import __version__

FLOOD_UPDATES, FLOOD_CLIENTS = 20, 3
"""A run with fewer updates or clients has no warning that one client sent most updates."""
COUNTERS = ("refused", "lost_rounds", "lost")
TIME: Mapping[Clock, str] = {"virtual": "virtual time (s)", "real": "real time (s)"}
"""What the seconds of a run are, by its clock."""


@dataclass(slots=True)
class ClientFigures:
    """One client's part in a run: how often it was heard, and how the last model serves it."""

    source: str = ""
    examples: int = 0
    updates: int = 0
    accuracy: float | None = None
    lost_rounds: int = 0


@dataclass(slots=True, repr=False)
class Result:
    """The measurements of one run, filled from its events.

    `describe` makes the figures of a client at its first event. `curve` has one `Evaluated` per
    evaluation, with every metric. `clients` has what each client sent, and its accuracy with the
    last model: asynchronous training favours fast clients, and these figures show how much.
    `lost_rounds` counts, by reason, the rounds whose update never came; `lost` how often a client's
    process died or was given up. `finished` says whether the run reached its end or was stopped by
    a callback, which `stopped_by` names; if an error ended it early, `ended_by` names the error.
    """

    settings: Mapping[str, Any]
    clock: Clock = "virtual"
    kernel: str = ""
    describe: Callable[[str], ClientFigures] = lambda _: ClientFigures()
    curve: list[Evaluated] = field(default_factory=list)
    updates: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    lost_rounds: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    clients: dict[str, ClientFigures] = field(default_factory=dict)
    versions: int = 1
    log_sha256: str = ""
    wall_seconds: float = 0.0
    begun: bool = False
    finished: bool = False
    ended_by: str | None = None
    stopped_by: str | None = None

    def add(self, event: Event) -> None:
        """Note an event."""
        match event:
            case Started():
                self.begun = True
            case Evaluated():
                self.curve.append(event)
            case Received(receipt=receipt):
                if receipt.reason is None:
                    self.updates += 1
                    client = self.of_client(receipt.client_id)
                    client.updates += 1
                    client.examples = client.examples or event.num_examples or 0
                else:
                    self.refused[receipt.reason.value] += 1
            case RoundLost(client_id=name, reason=reason):
                self.lost_rounds[reason] += 1
                self.of_client(name).lost_rounds += 1
            case Left(client_id=name, reason=str()):
                self.lost[name] += 1
            case Finished():
                self.finished = True
                self.stopped_by = event.stopped_by
            case _:
                pass

    def close(self, versions: int, log_sha256: str, wall_seconds: float) -> None:
        """Note what is known once the run is over, however it ended."""
        self.versions = versions
        self.log_sha256 = log_sha256
        self.wall_seconds = wall_seconds

    def state(self) -> Saved:
        """What was measured and counted so far."""
        return {
            "curve": [[p.seconds, p.version, dict(p.metrics)] for p in self.curve],
            "updates": self.updates,
            **{name: dict(getattr(self, name)) for name in COUNTERS},
            "clients": [[name, *astuple(figures)] for name, figures in self.clients.items()],
            "begun": self.begun,
        }

    def restore(self, state: Saved) -> None:
        """Go on where an earlier process has saved the run."""
        self.curve = [Evaluated(*point) for point in state["curve"]]
        self.updates, self.begun = int(state["updates"]), bool(state["begun"])
        for name in COUNTERS:
            setattr(self, name, Counter(state[name]))
        self.clients = {name: ClientFigures(*figures) for name, *figures in state["clients"]}

    def set_client_accuracies(self, measured: Mapping[str, float | None]) -> None:
        """Note how well the last model serves each client."""
        for name, accuracy in measured.items():
            self.of_client(name).accuracy = accuracy

    def end_early(self, error: BaseException) -> None:
        """Note what ended the run before its time; the error carries the result."""
        self.finished = False
        self.ended_by = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        error.result = self  # type: ignore[attr-defined]

    def of_client(self, name: str) -> ClientFigures:
        """The figures of a client; of very many clients, only those that had an event have any."""
        figures = self.clients.get(name)
        if figures is None:
            figures = self.clients[name] = self.describe(name)
        return figures

    @property
    def warnings(self) -> list[str]:
        """What is unusual about the run, one line each."""
        if self.updates < FLOOD_UPDATES or len(self.clients) < FLOOD_CLIENTS:
            return []
        return [
            f"client {name!r} sent {client.updates} of {self.updates} updates, more than half: "
            "its rounds are much shorter than those of others; give it more data or another device"
            for name, client in self.clients.items()
            if 2 * client.updates > self.updates
        ]

    @property
    def max_accuracy(self) -> float | None:
        """The highest accuracy that was measured."""
        return self.best(ACCURACY)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of what was measured; on Flower, clients may measure other things each time."""
        return tuple(dict.fromkeys(name for point in self.curve for name in point.metrics))

    def metric(self, name: str) -> list[float]:
        """One metric over all evaluations; empty if it was not measured."""
        return [point.metrics[name] for point in self.curve if name in point.metrics]

    @property
    def t90_seconds(self) -> float | None:
        """When 90 % of the maximum accuracy was first reached."""
        return self.seconds_to_90(ACCURACY)

    def best(self, name: str, goal: Goal = "max") -> float | None:
        """The best value of a metric; None if it was not measured, or was never a number."""
        known = [value for value in self.metric(name) if not isnan(value)]
        return (max if goal == "max" else min)(known, default=None)

    def seconds_to(self, name: str, target: float, goal: Goal = "max") -> float | None:
        """When a metric was first as good as `target`; None if it never was."""
        for point in self.curve:
            value = point.metrics.get(name, nan)
            if value >= target if goal == "max" else value <= target:
                return point.seconds
        return None

    def seconds_to_90(self, name: str) -> float | None:
        """When 90 % of a metric's own maximum was first reached; None if that is not above 0."""
        best = self.best(name)
        return self.seconds_to(name, 0.9 * best) if best is not None and best > 0 else None

    def client_accuracy(self, percentile: float) -> float | None:
        """This percentile of the clients' own accuracies with the last model."""
        known = [c.accuracy for c in self.clients.values() if c.accuracy is not None]
        return float(np.percentile(known, percentile)) if known else None

    def __repr__(self) -> str:
        best = "none" if self.max_accuracy is None else f"{self.max_accuracy:.4f}"
        return f"Result(max_accuracy={best}, updates={self.updates}, log={self.log_sha256[:12]}…)"

    def summary(self) -> dict[str, Any]:
        """The figures of the run, with what made them."""
        return {
            "max_accuracy": self.max_accuracy,
            "final_accuracy": self.curve[-1].accuracy if self.curve else None,
            "t90_seconds": self.t90_seconds,
            "metrics": {name: _range(self.metric(name)) for name in self.metrics},
            "client_accuracy_p5": self.client_accuracy(5),
            "client_accuracy_p95": self.client_accuracy(95),
            "versions": self.versions,
            "updates": self.updates,
            "rejected": dict(sorted(self.refused.items())),
            "lost_rounds": dict(sorted(self.lost_rounds.items())),
            "lost": dict(sorted(self.lost.items())),
            "kernel": self.kernel,
            "log_sha256": self.log_sha256,
            "wall_seconds": round(self.wall_seconds, 3),
            "finished": self.finished,
            "ended_by": self.ended_by,
            "stopped_by": self.stopped_by,
            "warnings": self.warnings,
            "settings": dict(self.settings),
            "package_version": __version__,
        }

    def write(self, folder: Path, title: str) -> None:
        """Write accuracy.csv, clients.csv, accuracy.png and, when all is there, summary.json."""
        names = self.metrics
        curve = ((p.seconds, p.version, *map(p.metrics.get, names)) for p in self.curve)
        write_table(folder / "accuracy.csv", ["seconds", "version", *names], curve)
        headings = ["client", *(f.name for f in fields(ClientFigures))]
        clients = ((name, *astuple(client)) for name, client in self.clients.items())
        write_table(folder / "clients.csv", headings, clients)
        self.plot(folder / "accuracy.png", title)
        write_json(folder / "summary.json", self.summary())

    def plot(self, path: str | Path, title: str = "") -> None:
        """Draw accuracy over time, and every metric of the user's own, to an image file.

        A task without accuracy has its loss drawn instead.
        """
        seconds = [point.seconds for point in self.curve]
        named = [str(self.settings[name]) for name in ("task", "rule") if name in self.settings]
        shown = [name for name in self.metrics if name != LOSS] or [LOSS]
        curves = {name: [p.metrics.get(name, nan) for p in self.curve] for name in shown}
        plots.metrics_over_time(path, seconds, curves, title or ", ".join(named), TIME[self.clock])


def _range(values: Sequence[float]) -> dict[str, float]:
    return {"final": values[-1], "min": min(values), "max": max(values)}
