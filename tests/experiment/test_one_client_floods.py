"""A client with hardly any data does not drown the others unseen."""

import pytest

from asyncfeded.core.messages import Receipt
from asyncfeded.result import Result
from asyncfeded.runtime.events import Received
from asyncfeded.simulation.profiles import LEAST_EXAMPLES, heterogeneous_devices


def result_of(*updates: int) -> Result:
    """A run in which client-0, client-1, … sent this many updates."""
    result = Result({})
    for number, count in enumerate(updates):
        name = f"client-{number}"
        result.of_client(name)
        for _ in range(count):
            receipt = Receipt(name, accepted=True, version=1)
            result.add(Received(0.0, None, None, None, receipt))
    return result


def test_a_client_that_sends_more_than_half_of_all_updates_is_named() -> None:
    (warning,) = result_of(11, 5, 4).warnings
    assert warning.startswith("client 'client-0' sent 11 of 20 updates")
    assert "\n" not in warning
    assert result_of(11, 5, 4).summary()["warnings"] == [warning]


@pytest.mark.parametrize(
    "updates", [(10, 5, 5), (19, 0, 0), (15, 5)], ids=["half", "fewer than 20", "two clients"]
)
def test_nothing_is_said_where_nothing_is_strange(updates: tuple[int, ...]) -> None:
    assert result_of(*updates).warnings == []


def test_an_epoch_takes_at_least_the_time_of_one_mini_batch() -> None:
    sizes = {"one": 1, "batch": LEAST_EXAMPLES, "twice": 2 * LEAST_EXAMPLES}
    devices = heterogeneous_devices(sizes, seed=0, seconds_per_example=1.0, speed_spread=0.0)
    times = {name: devices[name].seconds_per_epoch for name in sizes}
    assert times == {"one": 32.0, "batch": 32.0, "twice": 64.0}
