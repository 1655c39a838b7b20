"""Federations of real processes on this machine: whole runs, keys, and what is killed with -9."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import waiting
from local_federation import LOOPBACK, Certificates, LocalFederation, local_federation
from marked import marked

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "flower"
APP = Path(__file__).parent / "counting_app"
CLIENTS = ("client-0", "client-1", "hospital")
ROUNDS = 200
NODES = 2

Told = list[dict[str, Any]]


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    """One SuperLink with two SuperNodes."""
    with local_federation(tmp_path_factory.mktemp("federation")) as federation:
        for number in range(NODES):
            start_node(federation, number)
        yield federation


def start_node(federation: LocalFederation, number: int) -> None:
    federation.start_node(f"node-{number}", {"partition-id": number, "num-partitions": NODES})


def start(federation: LocalFederation, folder: Path, clients: str, **settings: Any) -> None:
    federation.run(APP, {"folder": str(folder), "clients": clients, **settings})


def told(folder: Path) -> Told:
    """What the server has told so far of every update."""
    path = folder / "told.jsonl"
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def updates_of(folder: Path, client: str) -> int:
    return sum(line.get("client") == client for line in told(folder))


def wait_until(condition: Callable[[], object]) -> None:
    """Wait; the processes need the time more than this one, which reads all of /proc to look."""

    def holds() -> object:
        time.sleep(0.2)
        return condition()

    waiting.wait_until(holds)


def wait_for_the_end(federation: LocalFederation, folder: Path) -> None:
    """Wait until the server's process has ended, which must have left its results."""
    wait_until(lambda: federation.server_app() or (folder / "summary.json").exists())
    wait_until(lambda: federation.server_app() is None)
    assert (folder / "summary.json").exists(), federation.log_of("superlink")[-5000:]


def check_that_each_counted_once(folder: Path) -> None:
    """Each accepted update has moved the place that is its own, once, by its learning rate."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    accepted = [e for e in events if e["event"] == "update" and e["accepted"]]
    expected = np.zeros(len(CLIENTS) * ROUNDS, np.float32)
    for event in accepted:
        place = CLIENTS.index(event["client"]) * ROUNDS + event["round"]
        assert expected[place] == 0, "two updates of one task were accepted"
        expected[place] = event["learning_rate"]
    (weight,) = load_file(folder / "model.safetensors").values()
    np.testing.assert_allclose(weight[0], expected, rtol=1e-5)
    summary = json.loads((folder / "summary.json").read_text())
    trained = (folder / "trained.txt").read_text().splitlines()
    assert len(trained) == len(set(trained)), "a client was sent the same task twice"
    assert summary["versions"] == 1 + len(accepted)
    assert summary["updates"] == len(accepted)
    assert summary["rejected"] == {}


def test_a_node_that_is_killed_and_started_again_goes_on_and_no_update_counts_twice(
    federation: LocalFederation, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    start(federation, folder, "client-0,client-1", updates=2, **{"pause-seconds": 1.0})
    wait_until(lambda: updates_of(folder, "client-1") >= 1)
    federation.kill("node-1")
    before = updates_of(folder, "client-1")
    assert before < 2, "the node was to be killed in the middle of its work"
    start_node(federation, 1)
    wait_for_the_end(federation, folder)
    assert updates_of(folder, "client-1") == 2
    check_that_each_counted_once(folder)


def test_a_server_that_is_killed_goes_on_with_the_model_that_it_had_acknowledged(
    federation: LocalFederation, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    clients = "client-0,client-1"
    start(federation, folder, clients, updates=1000)
    wait_until(lambda: len(told(folder)) >= 3)
    process = federation.server_app()
    assert process is not None
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: federation.server_app() is None)
    acknowledged = {line["version"]: line["digest"] for line in told(folder)}
    lines = len(told(folder))

    most = max(updates_of(folder, "client-0"), updates_of(folder, "client-1"))
    start(federation, folder, clients, updates=most + 1)
    wait_for_the_end(federation, folder)
    again = told(folder)[lines:]
    (resumed,) = [line for line in again if "resumed" in line]
    assert resumed["version"] <= max(acknowledged)
    # What the journal has is replayed: every version is the one that clients have heard of.
    digests = {line["version"]: line["digest"] for line in again}
    for version in range(resumed["version"], max(acknowledged) + 1):
        assert digests[version] == acknowledged.get(version, digests[version])
    assert max(digests) > max(acknowledged)
    check_that_each_counted_once(folder)


def test_with_tls_and_keys_a_node_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    keys, folder = tmp_path / "keys", tmp_path / "run"
    subprocess.run(
        [EXAMPLES / "keys.sh", keys, LOOPBACK, "hospital", "stranger"],
        check=True,
        capture_output=True,
    )
    certificates = Certificates(keys / "ca.crt", keys / "server.crt", keys / "server.key")
    options = ["--enable-supernode-auth"]
    with local_federation(tmp_path / "processes", certificates, options) as federation:
        public = str(keys / "hospital.pub")
        federation.flwr("supernode", "register", public, "local", "--name", "hospital")
        start(federation, folder, "hospital", updates=2)
        federation.start_node("stranger", {"partition-id": 0}, keys / "stranger")
        federation.start_node("hospital", {"partition-id": 0}, keys / "hospital")
        wait_until(lambda: "Failed to activate SuperNode" in federation.log_of("stranger"))
        federation.kill("stranger")
        wait_for_the_end(federation, folder)
    assert {line["client"] for line in told(folder)} == {"hospital"}
    check_that_each_counted_once(folder)


def test_the_example_trains_and_leaves_no_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command: list[str | Path] = [
        sys.executable,
        EXAMPLES / "start.py",
        "--nodes",
        "2",
        "--seconds",
        "3600",
        "--updates",
        "3",
    ]
    done = subprocess.run(
        [*command, "--out", out], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "max_accuracy" in done.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert summary["updates"] == 3
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    assert list(marked(str(out))) == []


def test_an_interrupt_ends_every_process_of_the_example(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command: list[str | Path] = [
        sys.executable,
        EXAMPLES / "start.py",
        "--nodes",
        "1",
        "--out",
        out,
    ]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        # What starts the tests in the background may ignore it, and this is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        wait_until((out / "processes" / "hospital-0.log").exists)
        wait_until(lambda: len(list(marked(str(out)))) >= 4)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert list(marked(str(out))) == []


@pytest.mark.parametrize("name", ["client_app.py", "task.py", "server_app.py"])
def test_the_ordinary_app_imports_nothing_of_ours(name: str) -> None:
    tree = ast.parse((EXAMPLES / "quickstart" / "quickstart" / name).read_text())
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(module.startswith("asyncfeded") for module in imported)
