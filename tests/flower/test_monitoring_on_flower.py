"""What Prometheus reads of a run on Flower, beside its events."""

from collections import Counter

import numpy as np
from flwr.app import Array, ArrayRecord, Error, Message

from asyncfeded import Prometheus, Server, rules
from asyncfeded.flower.faults import Fault
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Received, RoundLost
from asyncfeded.runtime.loop import run
from fake_grid import Answer, plus, reply_with
from scraping import Scraped
from small_federation import ZERO, federation, transport_of

SECONDS = 20.0


def in_turns(*answers: Answer) -> Answer:
    """A ClientApp that does one thing after another, and begins again."""
    calls = iter(range(1000))
    return lambda message: answers[next(calls) % len(answers)](message)


def test_every_figure_of_a_run_on_flower_is_that_of_its_events() -> None:
    def fails(message: Message) -> Message:
        return Message(Error(2, "why"), reply_to=message)

    def sends_nan(message: Message) -> Message:
        arrays = ArrayRecord({"x": Array(np.full(3, np.nan, np.float32))})
        return reply_with(message, arrays, num_examples=10)

    grid, clock = federation(plus(0.1), in_turns(plus(0.2), fails, sends_nan))
    server = Server(ZERO, rules.asyncfeded())
    control = Run(server, SECONDS)
    events = []
    with Prometheus(port=0) as monitor:
        scraped = Scraped(monitor)
        for event in run(server, transport_of(grid, clock, SECONDS), SECONDS, control=control):
            events.append(event)
            monitor(event, control)
            scraped(event, control)
    updates = [event for event in events if isinstance(event, Received)]
    accepted = [event for event in updates if event.receipt.accepted]
    lost = Counter(str(event.reason) for event in events if isinstance(event, RoundLost))
    assert scraped["updates_total"] == len(accepted) > 10
    assert scraped.by("reason", "refused_updates_total") == {
        "not_finite": len(updates) - len(accepted)
    }
    assert scraped.by("reason", "lost_rounds_total") == lost
    assert lost[Fault.APP_RAISED.value] > 1
    assert scraped["update_epochs_sum"] == sum(event.epochs or 0 for event in accepted)
    total = 0.0
    for event in accepted:
        total += event.held_seconds or 0.0
    assert scraped["round_seconds_sum"] == total > 0
    assert scraped["clients"] == 2
