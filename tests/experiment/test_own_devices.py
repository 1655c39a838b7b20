"""Devices of one's own and times away, given to `federate`."""

from typing import Literal

import pytest
import torch
from torch import nn

from asyncfeded import Availability, ClientNames, LocalTraining, RoundTime, Virtual, federate, rules

DATA = [(torch.randn(20, 4), torch.arange(20) % 2) for _ in range(3)]


class Rush:
    """A round takes a tenth of a second per epoch or step, and three tenths from second 2 on."""

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        return RoundTime(0.0, 0.0, epochs * (0.1 if begins < 2 else 0.3), 0.0)


@pytest.mark.parametrize("unit", ["epochs", "steps"])
def test_devices_of_ones_own_are_told_the_time_and_k(unit: Literal["epochs", "steps"]) -> None:
    training = LocalTraining(unit=unit)
    steady = rules.asyncfeded(kappa=0.0)
    result = federate(
        nn.Linear(4, 2), DATA, rule=steady, world=Virtual(Rush()), seconds=5.0, training=training
    )
    # At K = 10 the rounds of each client end at 1, at 2 and, three times as slow, at 5 s.
    assert result.updates == 9


def test_times_away_are_given_as_an_object() -> None:
    names = ClientNames(3)
    away = Availability.day_and_night(names, share=0.5, day_seconds=2.0, when_away="lose")
    result = federate(nn.Linear(4, 2), DATA, seconds=9.0, world=Virtual(Rush(), availability=away))
    assert result.lost_rounds["away"] > 0
