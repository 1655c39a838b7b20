"""The same app under Flower's own simulation engine, started as its users start it: `flwr run`."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from waiting import wait_until

BIN = Path(sys.executable).parent

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tiny"
version = "1.0.0"
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41,<1.42"]

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "nobody"
fab-format-version = 1
flwr-version-target = "1.41.0"

[tool.flwr.app.components]
serverapp = "tiny.app:server"
clientapp = "tiny.app:client"
"""

APP = """
import torch
from torch import nn

import asyncfeded
from asyncfeded import StopAfter, rules


def make_model():
    torch.manual_seed(0)
    return nn.Linear(4, 3)


def data(number):
    draw = torch.Generator().manual_seed(int(number))
    x = torch.randn(60, 4, generator=draw)
    return x, x[:, :3].argmax(1)


client = asyncfeded.flower.client_app(make_model, lambda c: data(c.node_config["partition-id"]))
server = asyncfeded.flower.server_app(
    make_model(), rule=rules.asyncfeded(), seconds=600, test=data(99), evaluate_every=1,
    evaluate_on=2, callbacks=[StopAfter(12)], folder=%r,
)
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def superlink(home: Path, port: int) -> Iterator[dict[str, str]]:
    """A SuperLink that simulates its nodes; gives the environment of those who talk to it."""
    environment = {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    home.mkdir()
    (home / "config.toml").write_text(
        '[superlink]\ndefault = "here"\n'
        f'[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
        "options.num-supernodes = 2\noptions.backend.client-resources.num-cpus = 1\n"
    )
    options = ["--insecure", "--simulation", "--disable-runtime-dependency-installation"]
    command = [str(BIN / "flower-superlink"), *options, "--host", "127.0.0.1", "--port", str(port)]
    with (home / "superlink.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            wait_until(lambda: _listens(port) or process.poll() is not None)
            yield environment
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # it, and what it has started
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_the_app_runs_with_virtual_nodes(tmp_path: Path) -> None:
    app, out = tmp_path / "app", tmp_path / "out"
    (app / "tiny").mkdir(parents=True)
    (app / "pyproject.toml").write_text(PYPROJECT)
    (app / "LICENSE").write_text("Nobody's.\n")
    (app / "tiny" / "__init__.py").touch()
    (app / "tiny" / "app.py").write_text(APP % str(out))
    with superlink(tmp_path / "home", free_port()) as environment:
        command = [str(BIN / "flwr"), "run", str(app), "here", "--stream"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert (out / "summary.json").exists(), said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["updates"] == 12
    assert summary["versions"] == 13
    assert summary["stopped_by"] == "StopAfter(updates=12)"
    assert summary["rejected"] == summary["lost_rounds"] == {}
    assert set(summary["metrics"]) >= {"accuracy", "federated_accuracy"}
    lines = (out / "clients.csv").read_text().splitlines()
    assert sorted(line.partition(",")[0] for line in lines[1:]) == ["client-0", "client-1"]
