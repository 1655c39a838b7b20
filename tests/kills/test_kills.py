"""A run that is killed goes on as if nothing had been; `make soak-kills` kills hundreds."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from command_line import start_asyncfeded
from cut_runs import TASK, check_same
from in_process import asyncfeded_here
from kills import in_real_time
from kills.histories import Killed, history, prepare
from kills.nursery import Nursery
from kills.on_ray import kill_when

pytestmark = pytest.mark.slow


def test_a_process_dies_at_any_step_and_the_next_goes_on(tmp_path: Path) -> None:
    killed = Killed()
    prepare(tmp_path)
    with Nursery(tmp_path) as nursery:
        for seed in (1, 5):
            history(nursery, seed, killed)
    assert killed.kills >= 5


def test_a_server_in_real_time_dies_at_any_step_and_loses_nothing(tmp_path: Path) -> None:
    killed = Killed()
    with Nursery(tmp_path) as nursery:
        for seed in (0, 4, 11):
            in_real_time.history(nursery, seed, killed)
    assert killed.kills >= 5


def is_saved_and_longer(out: Path, size: float) -> bool:
    """Whether a run was saved and its log has grown so far."""
    log = out / "events.jsonl"
    return any(out.glob("checkpoint/snap*")) and log.exists() and log.stat().st_size > size


def test_the_command_itself_is_killed_twice_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny_outside.py").write_text(TASK)
    options = (
        *("--task", "tiny_outside.py:tiny", "--clients", "4", "--seconds", "60"),
        *("--checkpoint-every", "1"),
    )
    done = asyncfeded_here("run", *options, "--out", "whole")
    assert done.returncode == 0, done.stderr
    size = Path("whole/events.jsonl").stat().st_size
    draw = np.random.default_rng(5)
    command: tuple[str, ...] = ("run", *options, "--out", "out")
    for share in draw.uniform((0.1, 0.5), (0.4, 0.8)):
        is_due = partial(is_saved_and_longer, Path("out"), share * size)
        errors = kill_when(is_due, start_asyncfeded(*command))
        assert errors is None, errors
        command = ("resume", "out", "--workers", "2")
    assert json.loads(Path("out/checkpoint/run.json").read_text())["command"] == "run"
    done = asyncfeded_here("resume", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert "goes on with version" in done.stdout
    check_same(Path("whole"), Path("out"))
