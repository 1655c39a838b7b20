"""A Prometheus of its own reads a run; the dashboard's queries are put to it."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from asyncfeded import Prometheus, Virtual
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Received
from dashboard import FOLDER, queries
from scraping import read
from small_run import small_run
from waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus on the path"),
]
MAY_BE_EMPTY = {"Refused updates", "Lost rounds and clients"}
"""Panels that show nothing while nothing goes wrong."""


class UntilAsked:
    """Slows a run down, and stops it once a test has asked all."""

    def __init__(self) -> None:
        self.began, self.asked = threading.Event(), threading.Event()

    def __call__(self, event: Any, run: Run) -> None:
        if isinstance(event, Received):
            self.began.set()
            self.asked.wait(0.02)
        if self.asked.is_set():
            run.stop()


@pytest.fixture
def running() -> Iterator[Prometheus]:
    monitor, until = Prometheus(port=0), UntilAsked()
    given = {"world": Virtual(suspension=0.2), "seconds": 1e5}
    run = threading.Thread(target=small_run, args=(monitor, until), kwargs=given)
    run.start()
    until.began.wait()
    yield monitor
    until.asked.set()
    run.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def asked(prometheus: str, query: str) -> list[Any]:
    with urlopen(f"{prometheus}/api/v1/query?{urlencode({'query': query})}", timeout=60) as answer:  # noqa: S310
        content = json.loads(answer.read())
    assert content["status"] == "success", query
    found: list[Any] = content["data"]["result"]
    return found


def test_prometheus_answers_every_query_of_the_dashboard(
    running: Prometheus, tmp_path: Path
) -> None:
    assert running.url is not None
    config = (FOLDER / "prometheus.yml").read_text()
    target = running.url.removeprefix("http://").removesuffix("/metrics")
    config = config.replace("127.0.0.1:9464", target)
    config = config.replace("scrape_interval: 5s", "scrape_interval: 1s\n  evaluation_interval: 1s")
    (tmp_path / "prometheus.yml").write_text(config)
    shutil.copy(FOLDER / "alerts.yml", tmp_path)
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        *("--config.file", "prometheus.yml", "--storage.tsdb.path", "data"),
        *("--web.listen-address", address),
    ]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:

        def scraped_often() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            try:
                found = asked(f"http://{address}", "count_over_time(asyncfeded_version[1m])")
            except URLError:
                return False
            return bool(found) and int(found[0]["value"][1]) >= 3

        wait_until(scraped_often)
        for query in queries():
            found = asked(f"http://{address}", query.text)
            assert found or query.panel in MAY_BE_EMPTY, query
        with urlopen(f"http://{address}/api/v1/rules", timeout=60) as answer:
            (group,) = json.loads(answer.read())["data"]["groups"]
        assert [rule["health"] for rule in group["rules"]] == ["ok", "ok"]
        (version,) = asked(f"http://{address}", "asyncfeded_version")
        assert 1 < float(version["value"][1]) <= read(running.url)["asyncfeded_version"]
    finally:
        process.terminate()
        process.wait()


def test_promtool_finds_nothing_to_say_of_names_and_types(running: Prometheus) -> None:
    assert running.url is not None
    with urlopen(running.url, timeout=60) as answer:  # noqa: S310 - of the run in this test
        text = answer.read()
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
