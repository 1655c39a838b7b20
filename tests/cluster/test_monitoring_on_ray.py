"""What Prometheus reads of a run in real time, beside the run's own log."""

import json
from pathlib import Path

import pytest
import torch

from asyncfeded import Checkpoint, EventLog, Prometheus, Ray, StopAfter, federate, guards, rules
from scraping import Scraped
from scripted import LONGEST_SECONDS

pytestmark = pytest.mark.usefixtures("ray_here")


def test_every_figure_of_a_run_on_ray_is_that_of_its_log(tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(40, 4, generator=draw) for _ in range(3)]
    data = [(x, (x[:, 0] > 0).long()) for x in inputs]
    monitor = Prometheus(port=0)
    scraped = Scraped(monitor)
    log = tmp_path / "events.jsonl"
    result = federate(
        torch.nn.Linear(4, 2),
        data,
        rule=rules.asyncfeded(),
        world=Ray(),
        seconds=LONGEST_SECONDS,
        evaluate_every=LONGEST_SECONDS,
        guards=[guards.bounded_staleness(1.0)],
        callbacks=[
            EventLog(log),
            monitor,
            StopAfter(30),
            Checkpoint(tmp_path / "saved"),
            scraped,
        ],
    )
    events = [json.loads(line) for line in log.read_text().splitlines()]
    updates = [event for event in events if event["event"] == "update"]
    accepted = [event for event in updates if event["accepted"]]
    assert scraped["updates_total"] == scraped["run_updates"] == len(accepted) == 30
    assert scraped.by("reason", "refused_updates_total") == result.refused
    assert sum(result.refused.values()) == len(updates) - 30
    total = 0.0
    for event in accepted:
        total += event["staleness"]
    assert scraped["update_staleness_sum"] == total
    assert scraped["update_epochs_sum"] == sum(event["epochs"] for event in accepted)
    assert scraped["round_seconds_count"] == 30
    assert 0 < scraped["round_seconds_sum"] < 3 * scraped["run_seconds"]
    assert scraped["clients"] == scraped["clients_at_work"] == 3
    # The last update stops the run: what it took is not measured.
    assert scraped["update_handling_seconds_count"] == len(updates) - 1
