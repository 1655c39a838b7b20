"""`--on ray` and `--workers-on ray` as a user meets them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import ray
from safetensors.numpy import load_file

from asyncfeded.cluster.session import ray_session
from asyncfeded.core.errors import ClusterError
from in_process import asyncfeded_here
from scripted import LONGEST_SECONDS, wait_until

SMALL = ("--clients", "2", "--devices", "heterogeneous", "--evaluate-every", "0.5")


@pytest.mark.usefixtures("ray_here")
def test_a_run_on_ray_writes_what_a_run_on_the_virtual_clock_writes(tmp_path: Path) -> None:
    for name, on in (("ray", "ray"), ("virtual", "virtual")):
        out = tmp_path / name
        done = asyncfeded_here("run", "--on", on, *SMALL, "--seconds", "1", "--out", out)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    there, here = tmp_path / "ray", tmp_path / "virtual"
    assert {path.name for path in there.iterdir()} == {path.name for path in here.iterdir()}
    summary = json.loads((there / "summary.json").read_text())
    assert summary["settings"]["on"] == "ray"
    assert summary["lost"] == {}
    curve = (there / "accuracy.csv").read_text().splitlines()
    assert [float(line.split(",")[0]) for line in curve[1:]] == [0.0, 0.5, 1.0]
    models = [load_file(folder / "model.safetensors") for folder in (there, here)]
    shapes = [{name: value.shape for name, value in model.items()} for model in models]
    assert shapes[0] == shapes[1]


@pytest.mark.usefixtures("ray_here")
def test_workers_on_ray_give_the_log_of_one_machine(tmp_path: Path) -> None:
    digests = []
    for name, where in (("here", ()), ("ray", ("--workers-on", "ray", "--workers", "2"))):
        out = tmp_path / name
        done = asyncfeded_here("run", *SMALL, "--seconds", "10", *where, "--out", out)
        assert done.returncode == 0, done.stderr
        digests.append(json.loads((out / "summary.json").read_text())["log_sha256"])
    assert digests[0] == digests[1]


def has_an_update(log: Path) -> bool:
    return log.exists() and '"event":"update"' in log.read_text()


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
    log = tmp_path / "events.jsonl"
    wait_until(lambda: process.poll() is not None or has_an_update(log))
    if ending == signal.SIGINT:
        os.killpg(process.pid, ending)  # as a terminal's Ctrl-C, which all of its processes get
    else:
        process.send_signal(ending)
    _, errors = process.communicate(timeout=LONGEST_SECONDS)
    assert process.returncode == 130, errors
    assert errors.strip().startswith("interrupted; ")
    assert "Traceback" not in errors
    assert load_file(tmp_path / "model.safetensors")
    assert has_an_update(log)
    assert json.loads((tmp_path / "summary.json").read_text())["finished"] is False
    wait_until(lambda: processes_of(process.pid) == [])


FAR_TASK = """
import torch

from asyncfeded import Task
from {helper} import make_inputs


class Far(torch.nn.Linear):
    pass


def far(clients: int) -> Task:
    return Task([(x, (x.sum(dim=1) > 0).long()) for x in make_inputs(clients)], lambda: Far(3, 2))
"""


@pytest.mark.usefixtures("ray_here")
def test_a_task_of_the_users_may_be_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    task, helper = (f"{kind}_{tmp_path.name}" for kind in ("far", "beside"))
    (there / f"{task}.py").write_text(FAR_TASK.format(helper=helper))
    (there / f"{helper}.py").write_text(
        "import torch\n\n\ndef make_inputs(clients):\n    return torch.ones(clients, 40, 3)\n"
    )
    monkeypatch.chdir(here)
    own = ("--task", f"{there / task}.py:far", "--clients", "2", "--devices", "real")
    done = asyncfeded_here("run", "--on", "ray", *own, "--seconds", "1", "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(Path("out/summary.json").read_text())["updates"] > 0


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
            "ray_address must be HOST:PORT or auto; given 'here'",
        ),
        (["--ray-address", "a:1"], "ray_address needs --on ray or --workers-on ray; given 'a:1'"),
        (["--on", "ray", "--at-work", "2"], "at_work must be left out on ray, where every client"),
        (["--devices", "real"], "devices must not be 'real' on the virtual clock: add --on ray"),
        (["--on", "mars"], "on must be 'virtual' or 'ray'; given 'mars'"),
        (["--on", "ray", "--patience", "0"], "patience must be greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(
    tmp_path: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    done = asyncfeded_here("run", *options, "--seconds", "1", "--out", tmp_path)
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
        pytest.raises(ClusterError, match=r"address must be left out where a Ray is in use"),
        ray_session("127.0.0.1:1"),
    ):
        pass
