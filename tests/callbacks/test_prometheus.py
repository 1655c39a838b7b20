"""What Prometheus reads of a run over HTTP, beside the run's own log."""

import json
import os
import socket
from collections import Counter
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import (
    Checkpoint,
    EventLog,
    Prometheus,
    StopAfter,
    Virtual,
    federate,
    guards,
    rules,
)
from asyncfeded.callbacks.clients_epochs import ClientsEpochs
from asyncfeded.callbacks.prometheus_metrics import MOST_REASONS, OTHER, SHARES, Metrics
from asyncfeded.core.errors import SettingError
from asyncfeded.core.server import Server
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Received, Resumed, RoundLost, Started
from builders import vector
from listening import Port, tcp_ports
from scraping import Scraped, read
from small_run import small_run


class KOfClients:
    """Keeps K of every client at the end of a run."""

    epochs: dict[str, int]
    at_work = 0

    def __call__(self, event: Any, run: Run) -> None:
        self.epochs, self.at_work = run.epochs, run.at_work


def logged_run(folder: Path, **given: Any) -> tuple[Any, Scraped, list[dict[str, Any]], KOfClients]:
    """A run that loses and refuses, its figures over HTTP and its log."""
    monitor, clients = Prometheus(port=0), KOfClients()
    scraped = Scraped(monitor)
    log = EventLog(folder / "events.jsonl")
    given = {"world": Virtual(suspension=0.3), "seconds": 8.0, **given}
    result = small_run(log, monitor, clients, scraped, **given)
    lines = (folder / "events.jsonl").read_text().splitlines()
    return result, scraped, [json.loads(line) for line in lines], clients


def test_every_figure_is_that_of_the_log(tmp_path: Path) -> None:
    result, scraped, events, _ = logged_run(tmp_path, guards=[guards.bounded_staleness(1.0)])
    updates = [event for event in events if event["event"] == "update"]
    accepted = [event for event in updates if event["accepted"]]
    refused = Counter(event["reason"] for event in updates if not event["accepted"])
    assert refused["too_stale"] > 5, "the test means a run with refused updates"
    assert scraped["updates_total"] == scraped["run_updates"] == len(accepted) > 30
    assert scraped.by("reason", "refused_updates_total") == refused == result.refused
    lost = Counter(event["reason"] for event in events if event["event"] == "lose")
    assert scraped.by("reason", "lost_rounds_total") == lost == result.lost_rounds
    assert lost["suspended"] > 5, "the test means a run with lost rounds"
    for name, field in (
        ("update_staleness", "staleness"),
        ("update_lag_versions", "lag"),
        ("update_epochs", "epochs"),
    ):
        values = [event[field] for event in accepted]
        total = 0.0
        for value in values:  # added in the same order, so the sums have the same bits
            total += value
        assert scraped[f"{name}_sum"] == total
        assert scraped[f"{name}_count"] == len(values)
    for limit in (0.1, 0.5, 1.0):
        below = sum(event["staleness"] <= limit for event in accepted)
        assert scraped[f'update_staleness_bucket{{le="{limit}"}}'] == below
    assert scraped["version"] == result.versions
    assert scraped["run_seconds"] == scraped["run_end_seconds"] == 8.0
    measured = scraped.by("metric", "evaluation")
    assert measured == result.curve[-1].metrics
    assert scraped["evaluation_version"] == result.curve[-1].version
    assert scraped["update_handling_seconds_count"] == len(updates)
    assert 0 < scraped["update_handling_seconds_sum"] < result.wall_seconds


@pytest.mark.parametrize("rule", ["asyncfeded", "fedavg"])
def test_k_is_there_over_the_clients(tmp_path: Path, rule: str) -> None:
    _, scraped, _, clients = logged_run(tmp_path, rule=rules.REGISTRY[rule]())
    found = sorted(clients.epochs.values())
    expected = np.quantile(found, SHARES, method="inverted_cdf").tolist()
    quantiles = scraped.by("share", "client_epochs")
    assert quantiles == {f"{s:g}": k for s, k in zip(SHARES, expected, strict=True)}
    assert scraped["clients"] == len(found) == 3
    assert scraped["clients_at_work"] == clients.at_work > 0
    assert 1 <= scraped["versions_held"] <= 4


def test_a_round_takes_as_long_as_the_clients_device_needed(tmp_path: Path) -> None:
    held: list[float] = []

    def note(event: Any, _: Run) -> None:
        if isinstance(event, Received) and event.receipt.accepted:
            assert event.held_seconds is not None
            held.append(event.held_seconds)

    monitor = Prometheus(port=0)
    scraped = Scraped(monitor)
    small_run(note, monitor, scraped)
    assert scraped["round_seconds_count"] == len(held)
    assert scraped["round_seconds_sum"] == sum(held) > 0


def test_a_rule_without_staleness_has_none_and_is_still_read(tmp_path: Path) -> None:
    result, scraped, _, _ = logged_run(tmp_path, rule=rules.fedavg())
    assert scraped["update_staleness_count"] == 0
    assert scraped["updates_total"] == result.updates > 0
    assert scraped.samples['asyncfeded_run_info{rule="fedavg",seed="0"}'] == 1


def test_a_run_that_is_read_has_the_same_log() -> None:
    digests = set()
    for monitors in ([], [Prometheus(port=0)]):
        for workers in (1, 2):
            world = Virtual(workers=workers, suspension=0.2)
            digests.add(small_run(*monitors, world=world).log_sha256)
    assert len(digests) == 1


def test_there_are_as_many_figures_for_many_clients_as_for_few() -> None:
    numbers = []
    for clients in (3, 60):
        draw = torch.Generator().manual_seed(0)
        inputs = [torch.randn(20, 5, generator=draw) for _ in range(clients)]
        data = [(x, (x[:, 0] > 0).long()) for x in inputs]
        monitor = Prometheus(port=0)
        scraped = Scraped(monitor)
        federate(nn.Linear(5, 2), data, seconds=1.0, callbacks=[monitor, scraped])
        assert scraped["clients"] == clients
        numbers.append(len(scraped.samples))
    assert numbers[0] == numbers[1] < 300


def test_reasons_without_number_are_few_figures() -> None:
    metrics = Metrics()
    server = Server(vector(0), rules.fedavg())
    run = Run(server)
    metrics.note(Started(0.0, "fedavg", ""), run)
    for number in range(100):
        metrics.note(RoundLost(1.0, "a", number, f"reason {number}", 1), run)
    found = {
        sample.labels["reason"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "asyncfeded_lost_rounds_total"
    }
    assert len(found) == MOST_REASONS + 1
    assert sum(found.values()) == 100
    assert found[OTHER] == 100 - (MOST_REASONS - 3)  # three are known before


def listening() -> set[Port]:
    """Where this process listens; another test may have left a server in it."""
    return set(tcp_ports([os.getpid()]))


def test_only_this_machine_can_read_unless_another_host_is_given() -> None:
    before = listening()
    for given, address in (({}, "127.0.0.1"), ({"host": "0.0.0.0"}, "0.0.0.0")):  # noqa: S104
        with Prometheus(port=0, **given) as monitor:
            ports = listening() - before
        assert monitor.url is None
        assert [port.address for port in ports] == [IPv4Address(address)]


def test_the_address_of_a_host_by_its_version_of_the_protocol() -> None:
    with Prometheus(port=0, host="::1") as monitor:
        assert monitor.url is not None
        assert monitor.url.startswith("http://[::1]:")
        assert read(monitor.url)["asyncfeded_updates_total"] == 0


def test_nothing_listens_after_the_run_however_it_ends() -> None:
    before = listening()
    monitor = Prometheus(port=0)
    urls = []

    def fail(event: Any, _: Run) -> None:
        urls.append(monitor.url)
        if isinstance(event, Received):
            raise ZeroDivisionError

    small_run(monitor, StopAfter(3))
    with pytest.raises(ZeroDivisionError):
        small_run(monitor, fail)
    port = int(urls[0].rpartition(":")[2].partition("/")[0])  # type: ignore[union-attr]
    assert listening() <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with Prometheus(port):  # it is free again
        pass


def test_a_port_in_use_is_one_line_before_the_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = f"port must be one that is free on '127.0.0.1'; given {port}, which is in use: "
        with pytest.raises(SettingError, match=f"^{text}choose another, or 0 for any that is free"):
            Prometheus(port)


def test_a_port_that_was_taken_meanwhile_is_the_same_line() -> None:
    with Prometheus(port=0) as first:
        assert first.url is not None
        port = int(first.url.rpartition(":")[2].partition("/")[0])
    late = Prometheus(port)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(SettingError, match="which is in use: choose another"),
    ):
        small_run(late)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"port": 65536}, "port must be from 0 to 65535; given 65536"),
        ({"port": -1}, "port must be from 0 to 65535; given -1"),
        ({"port": "9464"}, "port must be a whole number; given '9464'"),
        ({"host": ""}, "host must be a name or an address; given ''"),
        ({"host": None}, "host must be a name or an address; given None"),
        ({"host": "192.0.2.1"}, "host must be an address of this machine.*given '192.0.2.1': "),
        ({"host": "a..b"}, "host must be an address of this machine.*given 'a..b': "),
    ],
)
def test_a_wrong_address_is_named(given: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingError, match=text):
        Prometheus(**{"port": 0, **given})


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncfeded.callbacks.prometheus.find_spec", lambda _: None)
    with pytest.raises(SettingError, match=r"pip install 'asyncfeded\[serve\]'"):
        Prometheus()


class PowerCut(BaseException):
    """Ends a run as nothing of it expects."""


def test_a_run_that_goes_on_has_all_its_updates_and_clients(tmp_path: Path) -> None:
    heard = 0

    def cut(event: Any, _: Run) -> None:
        nonlocal heard
        heard += isinstance(event, Received)
        if heard == 40:
            raise PowerCut

    with pytest.raises(PowerCut):
        small_run(Checkpoint(tmp_path, every=0.5), Prometheus(port=0), cut)
    monitor = Prometheus(port=0)
    scraped, first, clients = Scraped(monitor), Scraped(monitor, at=Resumed), KOfClients()
    result = small_run(monitor, clients, first, scraped, resume=tmp_path)
    assert first["clients"] == 3
    assert first.by("share", "client_epochs")["0"] >= 1
    assert first["updates_total"] == 0 < first["run_updates"]
    assert scraped["run_updates"] == result.updates
    assert 0 < scraped["updates_total"] < result.updates
    assert scraped["clients"] == 3
    assert scraped.by("share", "client_epochs")["1"] == max(clients.epochs.values())


def test_quantiles_of_k_by_hand() -> None:
    server = Server(vector(0), rules.fedavg())
    for number in range(4):
        server.join(f"client-{number}")
    epochs = ClientsEpochs()
    assert epochs.quantiles((0.5,)) == []
    assert epochs.mean == 0
    epochs.note(Started(0.0, "fedavg", ""), Run(server))
    for number, k in enumerate((1, 2, 2, 9)):
        epochs._set(f"client-{number}", k)
    # One client of four has at most 1, three have at most 2, all have at most 9.
    assert epochs.quantiles((0, 0.25, 0.5, 0.75, 0.8, 1)) == [1, 1, 2, 2, 9, 9]
    assert (epochs.mean, epochs.clients) == (3.5, 4)
