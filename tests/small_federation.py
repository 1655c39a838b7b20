"""A small server on a fake Grid: a model of three elements, and what happened in a run."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asyncfeded import Server, rules
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.flower_transport import FlowerTransport
from asyncfeded.flower.messages import Messages
from asyncfeded.flower.model import Entry
from asyncfeded.runtime.events import Event, Finished, Received, RoundLost
from asyncfeded.runtime.loop import run
from fake_grid import Answer, Clock, FakeGrid, Node

FLOAT32 = np.dtype(np.float32)
CODEC_OF_THREE = (Entry("x", 0, 3, (3,), FLOAT32),)
ZERO: Vector = np.zeros(3, np.float32)


def federation(*answers: Answer, seconds: float = 1.0) -> tuple[FakeGrid, Clock]:
    """Nodes 1, 2, …, registered as site-1, site-2, …, on a clock that stands still."""
    clock = Clock()
    grid = FakeGrid(clock)
    grid.add(*(Node(n, answer, seconds, f"site-{n}") for n, answer in enumerate(answers, 1)))
    return grid, clock


def transport_of(grid: FakeGrid, clock: Clock, seconds: float, **options: Any) -> FlowerTransport:
    messages = options.pop("messages", Messages())
    return FlowerTransport(
        grid, Codec(CODEC_OF_THREE), messages, seconds, clock=clock, sleep=clock.sleep, **options
    )


def events_of(
    grid: FakeGrid,
    clock: Clock,
    seconds: float = 60.0,
    rule: AnyRule | None = None,
    at: Callable[[Event], object] = lambda event: None,
    **options: Any,
) -> list[Event]:
    """Drive a run to its end; `at` is called with every event."""
    server = Server(ZERO, rules.asyncfeded() if rule is None else rule)
    transport = transport_of(grid, clock, seconds, **options)
    events = []
    for event in run(server, transport, seconds):
        events.append(event)
        at(event)
    assert isinstance(events[-1], Finished)
    return events


def lost(events: list[Event]) -> list[tuple[str, str]]:
    return [
        (event.client_id, str(event.reason)) for event in events if isinstance(event, RoundLost)
    ]


def refused(events: list[Event]) -> list[str]:
    receipts = [event.receipt for event in events if isinstance(event, Received)]
    return [receipt.reason.value for receipt in receipts if receipt.reason is not None]


def accepted(events: list[Event]) -> list[str]:
    receipts = [event.receipt for event in events if isinstance(event, Received)]
    return [receipt.client_id for receipt in receipts if receipt.accepted]
