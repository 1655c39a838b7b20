"""The dashboard for Grafana asks for what a run serves, in the right units."""

import json
import re

import pytest

from asyncfeded import Prometheus, Virtual
from dashboard import FOLDER, Query, queries
from scraping import Scraped
from small_run import small_run

METRIC = re.compile(r"\b(?:asyncfeded|process)_[a-z_]+")
QUERIES = list(queries())
UNITS = {
    "asyncfeded_run_info": "none",
    "asyncfeded_run_seconds": "s",
    "asyncfeded_run_end_seconds": "s",
    "asyncfeded_evaluation": "none",
    "asyncfeded_run_updates": "short",
    "asyncfeded_refused_updates_total": "short",
    "asyncfeded_lost_rounds_total": "short",
    "asyncfeded_lost_clients_total": "short",
    "asyncfeded_clients": "short",
    "asyncfeded_clients_at_work": "short",
    "asyncfeded_versions_held": "short",
    "asyncfeded_updates_total": "short",
    "asyncfeded_last_update_timestamp_seconds": "s",
    "asyncfeded_update_handling_seconds": "s",
    "asyncfeded_round_seconds": "s",
    "asyncfeded_update_staleness": "none",
    "asyncfeded_update_lag_versions": "none",
    "asyncfeded_client_epochs": "none",
    "asyncfeded_update_epochs": "none",
    "process_resident_memory_bytes": "bytes",
    "process_cpu_seconds_total": "s",
}
"""What a metric is measured in, in the words of Grafana."""


@pytest.fixture(scope="module")
def samples() -> set[str]:
    monitor = Prometheus(port=0)
    scraped = Scraped(monitor)
    small_run(monitor, scraped, world=Virtual(suspension=0.2))
    return set(scraped.samples)


def unit_of(query: str) -> str:
    """The unit of what a query gives: of a rate per second, a mean, a share or a difference."""
    names = [re.sub(r"_(bucket|sum|count)$", "", name) for name in METRIC.findall(query)]
    (unit,) = {UNITS[name] for name in names}
    if query.startswith("1 / (rate("):
        return {"short": "s"}[unit]
    if query.startswith("rate(") and "_sum" not in query:
        return {"short": "cps", "s": "none"}[unit]  # seconds per second are none
    if re.fullmatch(r"\w+\{[^}]*\} / \w+\{[^}]*\}", query):
        return "percentunit"
    return "percentunit" if 'metric="accuracy"' in query else unit


def test_there_is_a_panel_for_everything_that_is_served() -> None:
    asked = {
        re.sub(r"_(bucket|sum|count)$", "", n) for q in QUERIES for n in METRIC.findall(q.text)
    }
    assert asked == set(UNITS)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.text[:60])
def test_a_query_asks_for_what_exists_in_its_unit(query: Query, samples: set[str]) -> None:
    names = {sample.partition("{")[0] for sample in samples}
    found = METRIC.findall(query.text)
    assert found
    assert set(found) <= names
    for name, label in re.findall(r"(asyncfeded_\w+)\{[^}]*?, (\w+)=", query.text):
        if label != "instance":
            assert any(sample.startswith(f"{name}{{{label}=") for sample in samples)
    assert query.unit == unit_of(query.text)


def test_labels_in_legends_exist(samples: set[str]) -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    of_prometheus = {"instance", "job"}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - of_prometheus
            (name, *_) = METRIC.findall(target["expr"])
            for label in labels:
                found = [sample for sample in samples if sample.startswith(f"{name}{{")]
                assert any(f'{label}="' in sample for sample in found), (name, label)


def test_panels_have_places_and_numbers_of_their_own() -> None:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_an_alarm_asks_for_what_exists(samples: set[str]) -> None:
    rules = (FOLDER / "alerts.yml").read_text()
    found = set(METRIC.findall(rules))
    assert len(found) == 3
    assert found <= {sample.partition("{")[0] for sample in samples}
