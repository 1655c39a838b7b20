"""`--on ray` and `--workers-on ray` as a user meets them, each with a Ray of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from asyncfeded.cluster.session import ray_session
from asyncfeded.core.errors import ClusterError
from command_line import asyncfeded

SMALL = ("--clients", "3", "--devices", "heterogeneous", "--evaluate-every", "0.5")


def test_a_run_on_ray_writes_what_a_run_on_the_virtual_clock_writes(tmp_path: Path) -> None:
    done = asyncfeded("run", "--on", "ray", *SMALL, "--seconds", "3", "--out", tmp_path / "ray")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    virtual = asyncfeded("run", *SMALL, "--seconds", "3", "--out", tmp_path / "virtual")
    assert virtual.returncode == 0
    names = {path.name for path in (tmp_path / "virtual").iterdir()}
    assert {path.name for path in (tmp_path / "ray").iterdir()} == names
    summary = json.loads((tmp_path / "ray" / "summary.json").read_text())
    assert summary["settings"]["on"] == "ray"
    assert summary["updates"] >= 3
    assert summary["lost"] == {}
    assert summary["max_accuracy"] > 0
    there, here = (load_file(tmp_path / name / "model.safetensors") for name in ("ray", "virtual"))
    assert {name: value.shape for name, value in there.items()} == {
        name: value.shape for name, value in here.items()
    }


def test_workers_on_ray_give_the_log_of_one_machine(tmp_path: Path) -> None:
    digests = []
    for name, where in (("here", ()), ("ray", ("--workers-on", "ray", "--workers", "2"))):
        done = asyncfeded("run", *SMALL, "--seconds", "10", *where, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        digests.append(json.loads((tmp_path / name / "summary.json").read_text())["log_sha256"])
    assert digests[0] == digests[1]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_the_last_version_and_leaves_no_process(
    tmp_path: Path, ending: signal.Signals
) -> None:
    command = [sys.executable, "-m", "asyncfeded", "run", "--on", "ray", *SMALL]
    process = subprocess.Popen(
        [*command, "--seconds", "600", "--devices", "real", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "  v1  " not in line:
            break
    if ending == signal.SIGINT:
        os.killpg(process.pid, ending)  # as a terminal's Ctrl-C, which all of its processes get
    else:
        process.send_signal(ending)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.strip().startswith("interrupted; ")
    assert "Traceback" not in errors
    assert load_file(tmp_path / "model.safetensors")
    assert (tmp_path / "events.jsonl").stat().st_size > 0
    assert json.loads((tmp_path / "summary.json").read_text())["finished"] is False
    deadline = time.monotonic() + 20
    while (left := processes_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def processes_of(session: int) -> list[str]:
    """The processes that were started in this session and are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, _, _, session_id = rest.split()[:4]
        if int(session_id) == session and state != "Z":
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "ray", "--ray-address", "127.0.0.1:1"], "ray cannot be reached at '127.0.0.1:1'"),
        (
            ["--on", "ray", "--ray-address", "here"],
            "ray_address must be HOST:PORT or auto; given",
        ),
        (["--ray-address", "a:1"], "ray_address needs --on ray or --workers-on ray; given 'a:1'"),
        (["--on", "ray", "--at-work", "2"], "at_work must be left out on ray, where every client"),
        (["--devices", "real"], "devices must not be 'real' on the virtual clock: add --on ray"),
        (["--on", "mars"], "on must be 'virtual' or 'ray'; given 'mars'"),
        (["--on", "ray", "--patience", "0"], "patience must be greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = asyncfeded("run", *options, "--seconds", "1", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def test_without_ray_installed_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ClusterError, match=r"ray is not installed.*pip install 'asyncfeded\[ray\]'"),
        ray_session(),
    ):
        pass


@pytest.mark.usefixtures("ray_here")
def test_a_second_cluster_cannot_be_joined_beside_one_in_use() -> None:
    with (
        pytest.raises(ClusterError, match=r"ray_address must be left out where a Ray is in use"),
        ray_session("127.0.0.1:1"),
    ):
        pass
