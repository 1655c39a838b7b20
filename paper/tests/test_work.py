"""Runs as units of work: kept when they are done, never made twice, the same when resumed."""

import signal
from pathlib import Path

import pytest

from asyncfeded import SettingError
from asyncfeded.experiment import run_settings
from asyncfeded.store import RunStore
from asyncfeded_paper.record import Record
from asyncfeded_paper.work import Kind, Laboratory, Standing, Unit
from command_line import asyncfeded_here, start_asyncfeded
from waiting import wait_until

COMMAND = ("paper", "--task", "synthetic-1-1", "--figure", "5", "--seconds", "8")


def unit(told: list[Record], **given: object) -> Unit:
    settings = run_settings({"seconds": 1.0, "start_up": 0.0, "suspension": 0.0, **given})
    return Unit(settings, told.append)


def nobody(standing: Standing, done: Unit | None, record: Record | None) -> None:
    """Watch no progress."""


@pytest.mark.slow
def test_a_run_is_made_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    store = tmp_path / "store"
    told: list[Record] = []
    # The second names the task's own value, the third is another run.
    units = [unit(told), unit(told, lam=5.0), unit(told, seed=1)]
    laboratory = Laboratory(RunStore(store), workers=2)
    laboratory.carry_out(units, nobody)
    assert len(told) == 3
    assert len(list(store.iterdir())) == 2
    before = {path: path.stat().st_mtime_ns for path in store.iterdir()}
    laboratory.carry_out(units, nobody)
    assert len(told) == 6
    assert {path: path.stat().st_mtime_ns for path in store.iterdir()} == before
    found = [laboratory.find(one.settings) for one in units]
    assert {record.key for record in told} == {record.key for record in found if record}
    assert found[0] == found[1] != found[2]


@pytest.mark.slow
def test_a_record_has_the_curve_and_how_k_was_steered(tmp_path: Path) -> None:
    told: list[Record] = []
    one = unit(told)
    Laboratory(RunStore(tmp_path), workers=1).carry_out([one], nobody)
    (record,) = told
    assert record.seconds[0] == 0.0
    assert len(record.accuracy) == len(record.seconds)
    assert set(record.steering) <= {f"client-{number}" for number in range(10)}
    steered = record.steering["client-5"]  # the fastest, who is heard all the time
    assert all(epochs is None or epochs >= 1 for epochs in steered["epochs"])
    assert sum(epochs is not None for epochs in steered["epochs"]) > 10
    assert record.seconds_to(2.0) == float("inf")


def test_no_workers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="workers must be at least 1; given 0"):
        Laboratory(RunStore(tmp_path), workers=0)


def test_the_time_left_is_estimated_from_runs_that_are_most_alike() -> None:
    a, b = ("synthetic-1-1", "fedavg", 0.1), ("femnist", "fedavg", 0.1)
    standing = Standing(left=[a, a, b], workers=2)
    assert standing.seconds_left(0.0) is None
    standing.costs = {a: [10.0, 20.0], b: [100.0]}
    assert standing.seconds_left(0.0) == pytest.approx((15 + 15 + 100) / 2)
    unknown: Kind = ("femnist", "asyncfeded", 0.1)
    standing.left = [unknown]
    assert standing.seconds_left(0.0) == pytest.approx(100 / 2)
    assert standing.total == 1


@pytest.mark.slow
def test_runs_of_the_store_tell_how_long_others_will_take(tmp_path: Path) -> None:
    laboratory = Laboratory(RunStore(tmp_path), workers=1)
    laboratory.carry_out([unit([])], nobody)
    estimates: list[float | None] = []

    def watch(standing: Standing, done: Unit | None, record: Record | None) -> None:
        if done is not None:
            estimates.append(standing.seconds_left(0.0))

    laboratory.carry_out([unit([]), unit([], seed=1)], watch)
    kept = laboratory.find(unit([]).settings)
    assert kept is not None
    # The first is found in the store; the second, another seed, is expected to take as long.
    assert estimates[0] == pytest.approx(kept.summary["wall_seconds"])
    assert estimates[1] == 0.0


@pytest.mark.slow
def test_a_killed_command_goes_on_to_the_same_results(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert asyncfeded_here(*COMMAND, "--out", whole, "--workers", "2").returncode == 0
    process = start_asyncfeded(*COMMAND, "--out", killed)
    wait_until(lambda: process.poll() is not None or list(killed.glob("store/*.json")))
    process.kill()
    process.communicate()
    assert not (killed / "results.csv").exists()
    assert 1 <= len(list(killed.glob("store/*.json"))) < 5
    again = asyncfeded_here(*COMMAND, "--out", killed)
    assert again.returncode == 0, again.stderr
    assert (killed / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()
    tables = Path("tables") / "cells.csv"
    assert (killed / tables).read_bytes() == (whole / tables).read_bytes()


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_and_says_that_the_command_goes_on(tmp_path: Path) -> None:
    process = start_asyncfeded(*COMMAND, "--seeds", "1000", "--out", tmp_path)
    wait_until(lambda: process.poll() is not None or list(tmp_path.glob("store/*.json")))
    workers = _children(process.pid)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on" in output
    assert "Traceback" not in errors
    assert workers
    wait_until(lambda: not any(map(_runs, workers)))


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended; init may be slow to take note of its end."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]
