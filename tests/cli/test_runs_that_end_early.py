"""Whatever ends a command early, the folder of its run holds what there was until then."""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from waiting import LONGEST_SECONDS, wait_until

pytestmark = pytest.mark.slow

FILES = {
    *("accuracy.csv", "accuracy.png", "clients.csv", "events.jsonl"),
    *("model.safetensors", "summary.json"),
}
LONG = ["run", "--clients", "4", "--seconds", "1e6"]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "asyncfeded", *map(str, arguments)]


def check_folder(folder: Path, ended_by: str) -> None:
    """The files are those of a whole run, and the summary says that it is none."""
    assert {path.name for path in folder.iterdir()} == {*FILES, "checkpoint"}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["finished"] is False
    assert ended_by in summary["ended_by"]
    assert summary["versions"] == summary["updates"] + 1
    assert summary["log_sha256"] == sha256((folder / "events.jsonl").read_bytes()).hexdigest()
    assert load_file(folder / "model.safetensors")


def test_a_reader_that_goes_away_ends_the_run_in_one_line(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(*LONG[:-1], "300", "--out", tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 2
    assert errors == "error: the output cannot be written: Broken pipe\n"
    check_folder(tmp_path, "Broken pipe")


def test_output_on_a_full_disk_ends_the_run_in_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*LONG[:-1], "300", "--out", tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: No space left on device\n"
    check_folder(tmp_path, "No space left on device")


def test_a_log_that_does_not_fit_ends_the_run_with_its_model(tmp_path: Path) -> None:
    limit = 150_000
    small = ("--widths", "20,10", "--max-examples", "60", "--rule", "fedasync-constant")
    done = subprocess.run(
        command(*LONG, *small, "--out", tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2
    log = tmp_path / "events.jsonl"
    assert done.stderr == f"error: log {str(log)!r} cannot be written: File too large\n"
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, "checkpoint"}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["finished"], summary["log_sha256"]) == (False, "")
    assert load_file(tmp_path / "model.safetensors")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_all_its_files(tmp_path: Path, ending: signal.Signals) -> None:
    process = subprocess.Popen(
        command(*LONG, "--workers", "2", "--kernel", "torch", "--out", tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = tmp_path / "events.jsonl"
    try:
        wait_until(lambda: log.exists() and log.stat().st_size)
        os.killpg(process.pid, ending)
        _, errors = process.communicate(timeout=LONGEST_SECONDS)
    finally:
        with suppress(ProcessLookupError):  # it has ended, as it should have
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert errors.strip() == (
        f"interrupted; to go on: asyncfeded resume {tmp_path}; a run's folder holds its results so "
        "far: the last version in model.safetensors, and a summary.json that says finished: false"
    )
    check_folder(tmp_path, "KeyboardInterrupt")
