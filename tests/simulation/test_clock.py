import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.simulation.clock import VirtualClock


def test_events_come_in_the_order_of_their_times() -> None:
    clock = VirtualClock[str]()
    for seconds, event in ((3.0, "c"), (1.0, "a"), (2.0, "b")):
        clock.schedule(seconds, event)
    trace = []
    while clock.peek() is not None:
        event = clock.pop()
        trace.append((clock.now, event))
    assert trace == [(1.0, "a"), (2.0, "b"), (3.0, "c")]


def test_events_of_one_instant_come_in_the_order_in_which_they_were_scheduled() -> None:
    clock = VirtualClock[object]()
    events = [object() for _ in range(20)]
    for event in events:
        clock.schedule(1.0, event)
    assert [clock.pop() for _ in events] == events
    assert len(clock) == 0


def test_nothing_can_be_scheduled_in_the_past() -> None:
    clock = VirtualClock[str]()
    clock.schedule(5.0, "now")
    clock.pop()
    with pytest.raises(SettingError, match=r"at least 5.0, the time now; given 4.9"):
        clock.schedule(4.9, "before")
