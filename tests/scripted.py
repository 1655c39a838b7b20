"""Clients on Ray whose every step a test decides: they wait for a file before they answer."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import toy
from asyncfeded import Server, rules
from asyncfeded.cluster.ray_transport import RayTransport
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.rule import AnyRule
from asyncfeded.runtime.events import Event
from asyncfeded.runtime.loop import run

Wanted = TypeVar("Wanted", bound=Event)

LONGEST_SECONDS = 600.0
"""A last resort: no test waits this long unless something is broken."""


@dataclass(frozen=True, slots=True)
class Gates:
    """A folder in which an open gate is a file."""

    folder: Path

    def open(self, client_id: str, round_number: int) -> None:
        (self.folder / f"{client_id}-{round_number}").touch()

    def open_all(self, client_id: str) -> None:
        (self.folder / client_id).touch()

    def process_of(self, client_id: str, round_number: int) -> int:
        """Wait until a client is in this round, and say in which process."""
        path = self.folder / f"{client_id}-{round_number}.pid"
        wait_until(lambda: path.exists() and path.read_text() != "")
        return int(path.read_text())

    def client(self) -> Callable[[], Train]:
        """What makes a toy client that waits for its gates; it travels to Ray's processes whole."""
        folder, train_toy = self.folder, toy.toy_train

        def train(task: TrainTask) -> ClientUpdate:
            name = f"{task.client_id}-{task.round}"
            written = folder / f"{name}.unfinished"
            written.write_text(str(os.getpid()))
            written.rename(folder / f"{name}.pid")
            while not ((folder / name).exists() or (folder / task.client_id).exists()):
                time.sleep(0.005)
            return train_toy(task)

        return lambda: train


def wait_until(condition: Callable[[], bool], seconds: float = LONGEST_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what a test waits for did not happen"
        time.sleep(0.005)


def drive(
    transport: RayTransport, rule: AnyRule | None = None, server: Server | None = None
) -> Iterator[Event]:
    """Run toy clients to the end."""
    if server is None:
        server = Server(toy.toy_initial(), rules.asyncfeded() if rule is None else rule)
    with closing(transport):
        yield from run(server, transport, LONGEST_SECONDS)


def until(events: Iterator[Event], kind: type[Wanted], client_id: str | None = None) -> Wanted:
    """The next event of a kind, and of a client if one is named."""
    for event in events:
        receipt = getattr(event, "receipt", event)
        if isinstance(event, kind) and client_id in (None, getattr(receipt, "client_id", None)):
            return event
    raise AssertionError(f"the run ended without {kind.__name__} of {client_id}")
