"""Histories of a server on Ray that is killed from outside, as its journal grows.

The clients write down which model each round began with. A client has a version only if the server
has sent it, which acknowledges the update that made it: so every version that a client has seen
must be in the history of the last server, however often earlier servers were killed.
"""

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np

from command_line import start_asyncfeded
from kills.histories import HistoryError, Killed
from waiting import LONGEST_SECONDS, wait_until

WATCHED = '''
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch

from asyncfeded import Task, rules

HERE = Path(__file__).parent


def note(name, numbers):
    file = os.open(HERE / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, sha256(numbers.tobytes()).hexdigest().encode() + b"\\n")
    os.close(file)


class Watched(torch.nn.Linear):
    """Notes the parameters that every round of training begins with."""

    def train(self, mode=True):
        if mode and (HERE / "begun").exists():
            parts = [part.detach().flatten() for part in (self.weight, self.bias)]
            note(f"seen-{os.getpid()}", torch.cat(parts).numpy())
        return super().train(mode)


def tiny(clients, seed):
    draw = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(40, 3, generator=draw) for _ in range(clients)]
    return Task([(x, (x.sum(dim=1) > 0).long()) for x in inputs], lambda: Watched(3, 2))


def watched():
    """Notes every version that an update meets, in a file of this server's."""
    rule = rules.asyncfeded(initial_epochs=2)
    (HERE / "begun").touch()

    def on_update(state, arrival):
        note(f"history-{os.getpid()}", arrival.current)
        return rule.on_update(state, arrival)

    return replace(rule, name="watched", on_update=on_update)
'''
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Lets a process join a private Ray at 127.0.0.1: else Ray replaces this address by another."""
SECONDS = 4.0
CLIENTS = 2
MOST_KILLS = 3
BYTES_PER_SIGNAL = 512


def history(
    folder: Path, address: str, seed: int, killed: Killed, most_kills: int = MOST_KILLS
) -> None:
    """Kill a server as often as the seed says, start it again, and check what it has at the end."""
    draw = np.random.default_rng(seed)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    own = folder / f"watched_{folder.name}.py"
    own.write_text(WATCHED)
    out = folder / "out"
    command: tuple[str | Path, ...] = (
        *("run", "--on", "ray", "--ray-address", address, "--devices", "real"),
        *("--task", f"{own.name}:tiny", "--rule", f"{own.name}:watched", "--kernel", "torch"),
        *("--clients", str(CLIENTS), "--seconds", str(SECONDS), "--out", out),
    )
    killed.result = "no version that a client had was lost, no update counted twice"
    signals = 0
    for _ in range(int(draw.integers(1, most_kills + 1))):
        signals += int(draw.integers(1, 60))
        process = start_asyncfeded(*command, cwd=folder, environment=ON_LOOPBACK)
        ended = kill_when(partial(has_signals, out, signals), process)
        if ended is not None:  # it was quicker than the kill
            check_end(ended, process)
            break
        killed.kills += 1
        killed.unsaved += journal_size(out) == 0
        if killed.tell:
            print(f"{command[0]}: killed after {journal_size(out)} signals of at least {signals}")
        if (out / "checkpoint" / "run.json").is_file():
            command = ("resume", out)
    else:
        process = start_asyncfeded(*command, cwd=folder, environment=ON_LOOPBACK)
        check_end(process.communicate(timeout=LONGEST_SECONDS)[1], process)
    check(folder, process.pid, seed)
    killed.histories += 1


def has_signals(out: Path, number: int) -> bool:
    return journal_size(out) >= number


def journal_size(out: Path) -> int:
    """How many signals the newest journal holds, at most."""
    sizes = [path.stat().st_size for path in out.glob("checkpoint/journal-*.log")]
    return max(sizes, default=0) // BYTES_PER_SIGNAL


def kill_when(condition: Callable[[], bool], process: Popen[str]) -> str | None:
    """Kill a process and all that it has started; its errors, if it ended before."""
    try:
        wait_until(lambda: condition() or process.poll() is not None)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    errors = process.communicate(timeout=LONGEST_SECONDS)[1]
    return None if process.returncode == -signal.SIGKILL else errors


def check_end(errors: str, process: Popen[str]) -> None:
    """The last server has reached the end of the run."""
    if process.returncode != 0:
        raise HistoryError(f"exit code {process.returncode}: {errors[-2000:]}")


def check(folder: Path, last: int, seed: int) -> None:
    """Nothing acknowledged is lost, nothing is counted twice, and versions never go back."""
    lines = (folder / "out" / "events.jsonl").read_text().splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    history = digests(folder / f"history-{last}")
    versions = {*history, *(events[end]["parameters_sha256"] for end in (0, -1))}
    initial = events[0]["parameters_sha256"]
    seen = [digest for path in folder.glob("seen-*") for digest in since(initial, digests(path))]
    expect(len(seen) > 0, seed, "no client has begun a round")
    lost = [digest for digest in seen if digest not in versions]
    expect(not lost, seed, f"{len(lost)} versions that clients had are lost, of {len(seen)}")
    updates = [event for event in events if event["event"] == "update" and event["accepted"]]
    counted = Counter((update["client"], update["round"]) for update in updates)
    expect(max(counted.values()) == 1, seed, "an update was counted twice")
    numbers = [event["version"] for event in events if "version" in event]
    expect(numbers == sorted(numbers), seed, "a version went back")
    expect(numbers[-1] == len(updates) + 1, seed, "an update made no version")
    times = [event["seconds"] for event in events]
    expect(times == sorted(times) and times[-1] == SECONDS, seed, "time went back, or ended early")


def since(initial: str, found: list[str]) -> list[str]:
    """A client's versions from the initial model on, with which its process warms up."""
    return found[found.index(initial) :] if initial in found else []


def digests(path: Path) -> list[str]:
    return path.read_text().split()


def expect(holds: bool, seed: int, otherwise: str) -> None:
    if not holds:
        raise HistoryError(f"seed {seed} on Ray: {otherwise}")
