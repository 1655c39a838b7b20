"""What Prometheus reads of a run, as metrics of its client library.

No metric has a label per client: there are as many for 100,000 clients as for ten.
"""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from asyncfeded.callbacks.clients_epochs import ClientsEpochs
from asyncfeded.core.messages import Receipt, Refusal
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import (
    Evaluated,
    Event,
    Left,
    Received,
    Resumed,
    RoundLost,
    Started,
)
from asyncfeded.runtime.transport import AWAY, REJOINED, SUSPENDED

NAMES_OF_A_RUN = ("task", "on", "seed")
"""The settings that tell a run from others, where it has them."""
MOST_REASONS = 20
"""How many reasons for a lost round are told apart; a world may give more, all `other`."""
OTHER = "other"
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
STALENESS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
VERSIONS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
EPOCHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
HANDLING_SECONDS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ROUND_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """The metrics of one run, in a registry of their own, filled from its events."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._latest = 0.0
        self._reasons: set[str] = set()
        self._epochs = ClientsEpochs()
        self.registry.register(_EpochsOfClients(self._epochs))
        self._info = Info("asyncfeded_run", "What is run.", registry=self.registry)
        self._measured = self._gauge("evaluation", "The last evaluation, by metric.", "metric")
        self._measured_version = self._gauge("evaluation_version", "The version evaluated last.")
        self._last_update = self._gauge(
            "last_update_timestamp_seconds", "When the last update was accepted, in Unix time."
        )
        self._updates = self._counter("updates", "Updates accepted by this process.")
        refused = self._counter("refused_updates", "Updates refused by this process.", "reason")
        self._refused = {reason: refused.labels(reason.value) for reason in Refusal}
        self._lost_rounds = self._counter(
            "lost_rounds", "Rounds whose update never came, by reason.", "reason"
        )
        for reason in (SUSPENDED, AWAY, REJOINED):
            self._lost_rounds.labels(self._bounded(reason))
        self._lost_clients = self._counter("lost_clients", "How often a client was lost.")
        self._staleness = self._histogram(
            "update_staleness", "Staleness of an accepted update, if the rule has one.", STALENESS
        )
        self._lag = self._histogram(
            "update_lag_versions", "Versions that an accepted update was behind.", VERSIONS
        )
        self._update_epochs = self._histogram("update_epochs", "K of an accepted update.", EPOCHS)
        self._round_seconds = self._histogram(
            "round_seconds",
            "Seconds of the run from a task to its accepted update.",
            ROUND_SECONDS,
        )
        self._handling = self._histogram(
            "update_handling_seconds",
            "Real seconds that the server took for an update: rule, tasks, log, callbacks.",
            HANDLING_SECONDS,
        )

    def note(self, event: Event, run: Run) -> None:
        """Note an event."""
        self._epochs.note(event, run)
        self._latest = max(self._latest, event.seconds)  # evaluations come a little late
        match event:
            case Started() | Resumed():
                self._begin(event.rule, run)
            case Received(receipt=receipt):
                if receipt.reason is None:
                    self._accepted(receipt, event.epochs, event.held_seconds)
                else:
                    self._refused[receipt.reason].inc()
                run.when_at_rest(lambda: self._handling.observe(run.handling_seconds))
            case RoundLost(reason=reason):
                self._lost_rounds.labels(self._bounded(reason)).inc()
            case Left(reason=str()):
                self._lost_clients.inc()
            case Evaluated(version=version, metrics=metrics):
                self._measured_version.set(version)
                for name, value in metrics.items():
                    self._measured.labels(name).set(value)
            case _:
                pass

    def _begin(self, rule: str, run: Run) -> None:
        """Add the figures that are read from the run itself, at every request."""
        named = {name: str(run.settings[name]) for name in NAMES_OF_A_RUN if name in run.settings}
        self._info.info({"rule": rule, **named})
        self._gauge("run_seconds", "Seconds of the run until now.").set_function(
            lambda: self._latest
        )
        self._gauge("run_end_seconds", "Seconds of the run at its end.").set(run.seconds)
        self._gauge(
            "run_updates", "Updates accepted since the run began, by earlier processes too."
        ).set_function(lambda: run.updates)
        self._gauge("version", "The newest version of the model.").set_function(lambda: run.version)
        self._gauge("versions_held", "Versions of the model held in memory.").set_function(
            lambda: run.versions_held
        )
        self._gauge("clients", "Clients that take part.").set_function(lambda: self._epochs.clients)
        self._gauge("clients_at_work", "Clients that hold a task.").set_function(
            lambda: run.at_work
        )

    def _accepted(self, receipt: Receipt, epochs: int | None, held: float | None) -> None:
        self._updates.inc()
        self._last_update.set_to_current_time()
        for histogram, value in (
            (self._staleness, receipt.staleness),
            (self._lag, receipt.lag),
            (self._update_epochs, epochs),
            (self._round_seconds, held),
        ):
            if value is not None:
                histogram.observe(value)

    def _bounded(self, reason: str) -> str:
        """The reason, or another word for it if there are too many."""
        if reason not in self._reasons and len(self._reasons) == MOST_REASONS:
            return OTHER
        self._reasons.add(reason)
        return reason

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"asyncfeded_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"asyncfeded_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, limits: Sequence[float]) -> Histogram:
        return Histogram(f"asyncfeded_{name}", text, registry=self.registry, buckets=limits)


class _EpochsOfClients(Collector):
    """K of the clients that take part, computed for each request: a value per share of them."""

    def __init__(self, epochs: ClientsEpochs) -> None:
        self._epochs = epochs

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give K at every share of the clients, from the least to the most."""
        family = GaugeMetricFamily(
            "asyncfeded_client_epochs",
            "K of the clients that take part: this share of them has at most this K.",
            labels=["share"],
        )
        for share, epochs in zip(SHARES, self._epochs.quantiles(SHARES), strict=False):
            family.add_metric([f"{share:g}"], epochs)
        yield family
