"""Histories of a server in real time that is killed at any step, as between two calls to its disk.

The server is the real one with its loop, journal, thread and files; its clients are in the same
process, so that hundreds of kills take minutes. They write down every task that they are given. At
the end, a second server is given what the log has, and nothing else: every version that a client
was given must be one of its versions, to the bit, and no round may count twice.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from asyncfeded import Checkpoint, ClientUpdate, EventLog, Server, TrainTask, federate, rules
from asyncfeded.callbacks.checkpoint import is_saved
from asyncfeded.core.errors import StateError
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.flat import FlatModule
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Signal
from asyncfeded.runtime.world import Clock, OpenWorld, Setup
from kills.histories import KILLED, MOST_KILLS, HistoryError, Killed
from kills.nursery import Nursery

COMMAND = "serve"
SAVED, LOG, TOLD = "saved", "events.jsonl", "told"
RULES: tuple[AnyRule, ...] = (rules.asyncfeded(initial_epochs=2), rules.fedavg(), rules.fedbuff(3))
INPUTS_AND_SECONDS = ((3, 3.0), (3, 3.0), (2_000, 1.0), (150_000, 0.3))
"""Records of a sector, of many, and of those that are written past the system's cache."""
NAMES = ("client-0", "client-1", "client-2")
STEP_SECONDS = 0.01
AGAIN, LOST, LEFT = 0.05, 0.05, 0.02


class Told(NamedTuple):
    """A task that a client was given."""

    client_id: str
    round: int
    version: int
    epochs: int
    digest: str


def told_in(folder: Path) -> list[Told]:
    """All tasks that clients were given so far, in whatever process."""
    path = folder / TOLD
    return (
        [Told(*json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    )


def digest_of(parameters: Vector) -> str:
    return sha256(parameters.tobytes()).hexdigest()


def update_of(told: Told, size: int) -> ClientUpdate:
    """What a client learns in a round: the same whenever it sends it."""
    draw = np.random.default_rng([NAMES.index(told.client_id), told.round])
    delta = draw.standard_normal(size, dtype=np.float32)
    return ClientUpdate(told.client_id, told.version, delta, 20, told.epochs, told.round)


class Clients:
    """A world of clients that need no time; every signal takes a step of its clock."""

    clock: ClassVar[Clock] = "real"

    def __init__(self, folder: Path, seed: int) -> None:
        self._told = told_in(folder)
        self._draw = np.random.default_rng([seed, len(self._told)])
        self._last = {told.client_id: told for told in self._told}
        self._tasks: dict[str, Told] = {}
        self._come_back = list(NAMES)
        self._file = os.open(folder / TOLD, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def connection(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def open(self, setup: Setup) -> Iterator[OpenWorld]:
        self._now, self._ends, self._size = setup.begins, setup.seconds, setup.num_parameters
        yield OpenWorld(self, lambda *_: lambda: Evaluation({"accuracy": 0.5}))

    def send(self, task: TrainTask) -> None:
        told = Told(*task[:1], task.round, task.version, task.epochs, digest_of(task.parameters))
        os.write(self._file, json.dumps(told).encode() + b"\n")
        self._told.append(told)
        self._last[told.client_id] = self._tasks[told.client_id] = told

    def next_signal(self) -> Signal | None:
        self._now += STEP_SECONDS
        return self._next() if self._now < self._ends else None

    def has_more(self) -> bool:
        return bool(self._draw.random() < 0.5)

    def close(self) -> None:
        os.close(self._file)

    def _next(self) -> Signal:
        draw = self._draw
        if self._come_back:
            name = self._come_back.pop(int(draw.integers(len(self._come_back))))
            if name in self._last and draw.random() < 0.5:
                return self._arriving(self._last[name])
            return Joining(self._now, name)
        if self._told and draw.random() < AGAIN:
            return self._arriving(self._told[int(draw.integers(len(self._told)))])
        if not self._tasks:
            return Joining(self._now, NAMES[int(draw.integers(len(NAMES)))])
        name = sorted(self._tasks)[int(draw.integers(len(self._tasks)))]
        task = self._tasks.pop(name)
        what = draw.random()
        if what < LOST:
            return Losing(self._now, name, task.round)
        if what < LOST + LEFT:
            self._come_back.append(name)
            return Leaving(self._now, name)
        return self._arriving(task)

    def _arriving(self, told: Told) -> Arriving:
        return Arriving(self._now, update_of(told, self._size))


def rule_of(seed: int) -> AnyRule:
    return RULES[seed % len(RULES)]


def shape_of(seed: int) -> tuple[int, float]:
    """How many inputs the model has, and how long the run is."""
    return INPUTS_AND_SECONDS[seed // len(RULES) % len(INPUTS_AND_SECONDS)]


def module_of(inputs: int) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(inputs, 2)


def serve(folder: Path, seed: int) -> None:
    """Be a server: begin, or go on with what is in the folder."""
    inputs, seconds = shape_of(seed)
    saved, log = folder / SAVED, folder / LOG
    resume = is_saved(saved)
    if not resume and is_over(log):
        return
    if not resume:
        log.unlink(missing_ok=True)  # of a process that nobody has heard of
    try:
        federate(
            module_of(inputs),
            {name: (torch.zeros(20, inputs), torch.zeros(20).long()) for name in NAMES},
            rule=rule_of(seed),
            world=Clients(folder, seed),
            seconds=seconds,
            evaluate_every=1.0,
            callbacks=[EventLog(log), Checkpoint(saved, every=(None, 0.3, 1.0)[seed % 7 % 3])],
            resume=saved if resume else None,
        )
    except StateError as error:
        if "holds none" not in str(error) or not is_over(log):
            raise


def is_over(log: Path) -> bool:
    """Whether a server has reached its end: it may be killed while it removes what was saved."""
    return log.exists() and '"event":"finish"' in log.read_text()


def history(nursery: Nursery, seed: int, killed: Killed) -> None:
    """Kill a server at moments drawn by the seed, start it again, and check its end."""
    killed.result = "no version that a client had was lost, no update counted twice"
    draw = np.random.default_rng(seed)
    folder = nursery.folder / "served"
    command = (COMMAND, str(folder), str(seed))
    kind = (COMMAND, str(seed % (len(RULES) * len(INPUTS_AND_SECONDS))))
    if kind not in killed.wholes:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        run_whole(nursery, command)
        killed.wholes[kind] = nursery.steps(), {}
        check(folder, seed)
    steps, _ = killed.wholes[kind]
    shutil.rmtree(folder)
    folder.mkdir()
    for number in range(int(draw.integers(1, MOST_KILLS + 1))):
        die_at = 1 + int(steps * draw.random() ** (1 if number == 0 else 2))
        code = nursery.run(*command, die_at=die_at)
        if killed.tell:
            print(f"step {die_at} of {steps}: exit code {code}, {len(told_in(folder))} tasks given")
        if code == 0:
            break  # it had fewer steps left
        expect(code == KILLED, seed, f"exit code {code}: {nursery.said()[-2000:]}")
        killed.kills += 1
        killed.unsaved += not is_saved(folder / SAVED)
    else:
        run_whole(nursery, command)
    check(folder, seed)
    killed.histories += 1


def run_whole(nursery: Nursery, command: tuple[str, ...]) -> None:
    """Let a server reach its end."""
    code = nursery.run(*command)
    if code != 0:
        raise HistoryError(f"exit code {code}: {nursery.said()[-2000:]}")


def check(folder: Path, seed: int) -> None:
    """Compare what clients were told with a server that is given the events of the log."""
    events: list[dict[str, Any]] = [
        json.loads(line) for line in (folder / LOG).read_text().splitlines()
    ]
    told = told_in(folder)
    initial = FlatModule(module_of(shape_of(seed)[0])).array
    server = Server(initial, rule_of(seed), population=len(NAMES))
    expect(digest_of(server.parameters) == events[0]["parameters_sha256"], seed, "another model")
    versions = {server.version: events[0]["parameters_sha256"]}
    taken = set()
    for event in events:
        match event["event"]:
            case "join":
                server.join(event["client"])
            case "lose":
                server.lose_round(event["client"], event["round"], event["reason"])
            case "leave":
                server.leave(event["client"])
            case "update":
                about = (
                    event["client"],
                    event["round"],
                    event["base_version"],
                    event["epochs"],
                    "",
                )
                receipt = server.receive(update_of(Told(*about), server.parameters.size))
                expect(receipt.accepted == event["accepted"], seed, f"it says of {event}")
                expect(receipt.version == event["version"], seed, f"another version in {event}")
                if receipt.accepted:
                    expect(about[:2] not in taken, seed, f"{about[:2]} counted twice")
                    taken.add(about[:2])
        versions[server.version] = digest_of(server.parameters)
    expect(versions[server.version] == events[-1]["parameters_sha256"], seed, "the end is another")
    expect(len(told) > 0, seed, "nobody was told anything")
    for task in told:
        expect(versions.get(task.version) == task.digest, seed, f"{task} is lost")
    times = [event["seconds"] for event in events]
    expect(times == sorted(times), seed, "time goes back")
    expect(events[-1]["seconds"] == shape_of(seed)[1], seed, "it ended early")


def expect(holds: bool, seed: int, otherwise: str) -> None:
    if not holds:
        raise HistoryError(
            f"seed {seed} in real time: {otherwise[:2000]}: python -m kills --on real --seed {seed}"
        )
