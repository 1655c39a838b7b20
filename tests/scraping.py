"""What Prometheus would read of a run, asked for over HTTP as it does."""

from collections.abc import Mapping
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from asyncfeded import Prometheus
from asyncfeded.runtime.events import Event, Finished

Samples = Mapping[str, float]
"""Values by name, with their labels as in name{label="value"}."""


def read(url: str | None) -> Samples:
    assert url is not None
    with urlopen(url, timeout=60) as answer:  # noqa: S310 - of a run in this test
        text = answer.read().decode()
    return {
        _name(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Scraped:
    """Reads a run at its end, while it can still be read, or at another event."""

    def __init__(self, monitor: Prometheus, at: type[Event] = Finished) -> None:
        self._monitor = monitor
        self._at = at
        self.samples: Samples = {}

    def __call__(self, event: Any, run: Any) -> None:
        if isinstance(event, self._at):
            self.samples = read(self._monitor.url)

    def __getitem__(self, name: str) -> float:
        return self.samples[f"asyncfeded_{name}"]

    def by(self, label: str, name: str) -> dict[str, float]:
        """The values of a metric that are not 0, by its label."""
        start = f'asyncfeded_{name}{{{label}="'
        found = {at: value for at, value in self.samples.items() if at.startswith(start)}
        return {at[len(start) : -2]: value for at, value in found.items() if value}


def _name(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inside}}}" if inside else name
