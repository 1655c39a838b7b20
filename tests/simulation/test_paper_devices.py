"""The devices of the paper's tasks, as the authors' rows show them."""

import numpy as np
import pytest

from asyncfeded.on_demand import ClientNames
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.profiles import PAPER_MACHINES, paper_devices

NAMES = list(ClientNames(10))


def mean_round(
    profile: str, client: str, barrier: bool = False, suspension: float = 0.0, epochs: int = 10
) -> float:
    model = DeviceModel(
        paper_devices(profile, NAMES, barrier, suspension),
        jitter=PAPER_MACHINES[profile].jitter(barrier),
    )
    return float(
        np.mean([model.round_time(client, number, epochs, 0).total for number in range(2000)])
    )


@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("profile", PAPER_MACHINES)
def test_a_round_of_ten_epochs_takes_the_authors_mean_and_the_gap_after_it(
    profile: str, barrier: bool
) -> None:
    machine = PAPER_MACHINES[profile]
    for client, seconds in zip(NAMES, machine.rounds(barrier), strict=True):
        expected = seconds + machine.gap_seconds
        assert mean_round(profile, client, barrier) == pytest.approx(expected, rel=0.02)


def test_a_part_of_a_round_does_not_shrink_with_the_epochs() -> None:
    # FEMNIST's client 0: (0.788 − 0.288) / 10 s of compute, 0.288 s fixed, 0.029 s between.
    one_epoch = 0.05 + 0.288 + 0.029
    assert mean_round("paper-femnist", NAMES[0], epochs=1) == pytest.approx(one_epoch, rel=0.02)


def test_asynchronous_rounds_get_shorter_as_more_clients_hang() -> None:
    # Client 0 of FEMNIST at P = 0.9: compute times 0.4 + 0.6 / (1 + 2.5 · 0.9) = 0.5846.
    expected = 0.5 * 0.5846 + 0.288 + 0.029
    found = mean_round("paper-femnist", NAMES[0], suspension=0.9)
    assert found == pytest.approx(expected, rel=0.02)


def test_synchronous_rounds_are_as_long_at_any_suspension() -> None:
    calm = mean_round("paper-femnist", NAMES[0], barrier=True, suspension=0.0)
    assert mean_round("paper-femnist", NAMES[0], barrier=True, suspension=0.9) == calm


def test_the_start_up_is_in_the_first_round_and_in_its_hang() -> None:
    # A first round of 10 + 5 s; its hang of two rounds takes 30 s, the next one's 10 s.
    lost = {("a", 0): 2.0, ("a", 1): 2.0}
    model = DeviceModel({"a": Device(0.5, 5.0)}, jitter=0.0, start_up_seconds=10.0, recorded=lost)
    first, second = (model.round_time("a", number, 10, 0) for number in (0, 1))
    assert (first.compute, first.hangs) == (15.0, 30.0)
    assert (second.compute, second.hangs) == (5.0, 10.0)
