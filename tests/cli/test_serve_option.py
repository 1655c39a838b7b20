"""`--serve` as a user types it."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from asyncfeded import Prometheus
from asyncfeded.experiment.begun import make_begun, write_begun
from cut_runs import Cut
from in_process import asyncfeded_here
from scraping import read

SMALL = ("--clients", "3", "--widths", "8,4", "--seconds", "3")


@pytest.fixture
def read_at_last(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where a run can be read at its end, and what is there."""
    found: list[Any] = []
    close = Prometheus.__exit__

    def read_and_close(self: Prometheus, *error: object) -> None:
        found.append((self.url, read(self.url)))
        close(self, *error)

    monkeypatch.setattr(Prometheus, "__exit__", read_and_close)
    return found


def test_a_run_says_where_it_can_be_read(tmp_path: Path, read_at_last: list[Any]) -> None:
    done = asyncfeded_here("run", *SMALL, "--serve", "0", "--out", tmp_path / "read")
    assert (done.returncode, done.stderr) == (0, "")
    ((url, samples),) = read_at_last
    assert re.findall(r"^metrics: (\S+)$", done.stdout, re.MULTILINE) == [url]
    assert url.startswith("http://127.0.0.1:")
    plain = asyncfeded_here("run", *SMALL, "--out", tmp_path / "plain")
    assert "metrics:" not in plain.stdout
    summaries = [
        json.loads((tmp_path / name / "summary.json").read_text()) for name in ("read", "plain")
    ]
    assert summaries[0]["log_sha256"] == summaries[1]["log_sha256"]
    assert samples["asyncfeded_updates_total"] == summaries[0]["updates"]
    named = {"rule": "asyncfeded", "task": "synthetic-1-1", "on": "virtual", "seed": "0"}
    labels = ",".join(f'{name}="{named[name]}"' for name in ("on", "rule", "seed", "task"))
    assert samples[f"asyncfeded_run_info{{{labels}}}"] == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x", "serve must be [HOST:]PORT, such as 9464; given 'x'"),
        (":9464", "serve must be [HOST:]PORT, such as 9464; given ':9464'"),
        ("9464/metrics", "serve must be [HOST:]PORT, such as 9464; given '9464/metrics'"),
        ("99999", "port must be from 0 to 65535; given 99999"),
        (
            "192.0.2.1:9464",
            "host must be an address of this machine, such as 127.0.0.1; given '192.0.2.1': "
            "Cannot assign requested address",
        ),
    ],
)
def test_a_wrong_address_is_one_line_and_nothing_is_left(
    given: str, said: str, tmp_path: Path
) -> None:
    done = asyncfeded_here("run", *SMALL, "--serve", given, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {said}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = ("--serve", f"127.0.0.1:{port}", "--out", tmp_path / "out")
        done = asyncfeded_here("run", *SMALL, *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: port must be one that is free on '127.0.0.1'; given {port}, which is in use: "
        "choose another, or 0 for any that is free\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_goes_on_is_served_as_before_or_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cut = Cut(tmp_path)
    cut.run("served", "--serve", "localhost:0", "--checkpoint-every", "0.5", cut=40)
    done = asyncfeded_here("resume", "served")
    assert (done.returncode, done.stderr) == (0, "")
    assert "metrics: http://localhost:" in done.stdout
    cut.run("silent", "--checkpoint-every", "0.5", cut=40)
    done = asyncfeded_here("resume", "silent", "--serve", "[::1]:0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "metrics: http://[::1]:" in done.stdout


def test_a_comparison_is_not_served(tmp_path: Path) -> None:
    write_begun(tmp_path, make_begun("compare", {}))
    done = asyncfeded_here("resume", tmp_path, "--serve", "0")
    assert done.returncode == 2
    assert done.stderr == "error: serve must be left out for a compare: it is for one run\n"
