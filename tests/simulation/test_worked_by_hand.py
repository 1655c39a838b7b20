"""A run on the virtual clock that was worked by hand: three clients, one parameter, no randomness.

Client i wants the parameter x to be its target c_i. Its loss is (x − c_i)², of which one step of
gradient descent at the learning rate 1/4 goes half of the way: y = (x + c_i) / 2. A round of A, B
and C takes 3, 4 and 5 seconds; their targets are 8, 16 and −8; x is 0 at first. Nine arrive:

    at          3    4    5    6    8    9   10   12   12
    of          A    B    C    A    B    A    C    B    A
    lag         0    1    2    2    2    1    3    2    2    of FedAsync, in versions

`benchmarks/same_versions.py` compares other tools with the same numbers.
"""

from math import sqrt

import numpy as np
import pytest

from asyncfeded import ClientUpdate, Server, TrainTask, rules
from asyncfeded.core.rule import AnyRule
from asyncfeded.runtime.devices import RoundTime
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess

TARGETS = {"A": 8.0, "B": 16.0, "C": -8.0}
SECONDS = {"A": 3.0, "B": 4.0, "C": 5.0}
END = 12.5

# x ← x + (y − x) / 2, so 0 → 2 (y = 4) → 5 (y = 8) → 1/2 (y = −4) → 11/4 (y = 5)
# → 53/8 (y = 21/2) → 6 (y = 43/8) → 9/8 (y = −15/4) → 199/32 (y = 181/16) → 423/64 (y = 7)
CONSTANT = [2, 5, 1 / 2, 11 / 4, 53 / 8, 6, 9 / 8, 199 / 32, 423 / 64]
# x ← x + (y − x) / (2 · (lag + 1)), so 0 → 2 (y = 4) → 2 + 6/4 (y = 8) → 7/2 − 15/2/6 (y = −4)
# → 9/4 + 11/4/6 (y = 5) → 65/24 + 169/24/6 (y = 39/4) …
POLYNOMIAL = [2, 7 / 2, 9 / 4, 65 / 24, 559 / 144, 17 / 4, 215 / 64, 15401 / 3456, 98173 / 20736]
# With b = 1 and a = 2, lags of 2 and 3 weigh 1/(2 · 1 + 1) = 1/3 and 1/(2 · 2 + 1) = 1/5:
# 0 → 2 (y = 4) → 5 (y = 8) → 5 − 9/6 (y = −4) → 7/2 + 3/2/6 (y = 5) → 15/4 + 27/4/6 (y = 21/2)
# → 39/8 + 1/2 (y = 47/8) → 43/8 − 61/8/10 (y = −9/4) …
HINGE = [2, 5, 7 / 2, 15 / 4, 39 / 8, 43 / 8, 369 / 80, 67 / 12, 1661 / 288]
# M = 2, s = (1 + lag)^(−1/2), Δ = y − x_base. A's 4 and B's 8, both from the first version:
# (4 + 8) / 2 = 6. C's −4 (lag 1) and A's 4 (lag 1), both from 0: nothing. B's 5 (lag 1, from 6) and
# A's 1 (lag 0, from 6): 6 + (5/√2 + 1) / 2. C's −7 (lag 2, from 6) and B's 5 (lag 1, from 6).
# A's last waits in the buffer.
THIRD = 6 + (5 / sqrt(2) + 1) / 2
FOURTH = THIRD + (-7 / sqrt(3) + 5 / sqrt(2)) / 2
BUFFERED = [0, 6, 6, 6, 6, THIRD, THIRD, FOURTH, FOURTH]


class Steady:
    """Devices whose rounds always take the same time."""

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        return RoundTime(0.0, 0.0, SECONDS[client_id], 0.0)


def half_of_the_way(task: TrainTask) -> ClientUpdate:
    delta = (np.float32(TARGETS[task.client_id]) - task.parameters) * np.float32(0.5)
    return ClientUpdate(task.client_id, task.version, delta, 1, task.epochs, task.round)


def played(rule: AnyRule) -> tuple[list[tuple[float, str]], list[float]]:
    """Who arrived when, and the parameter after that."""
    server = Server(np.zeros(1, np.float32), rule)
    members = [Membership(name) for name in TARGETS]
    transport = VirtualTransport(Steady(), InProcess(half_of_the_way), members, END)
    arrivals, versions = [], []
    for event in run(server, transport, END):
        if isinstance(event, Received):
            arrivals.append((event.seconds, event.receipt.client_id))
            versions.append(float(server.parameters[0]))
    return arrivals, versions


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(rules.fedasync(0.5, "constant"), CONSTANT, id="fedasync-constant"),
        pytest.param(rules.fedasync(0.5, "polynomial", a=1.0), POLYNOMIAL, id="polynomial"),
        pytest.param(rules.fedasync(0.5, "hinge", a=2.0, b=1.0), HINGE, id="fedasync-hinge"),
        pytest.param(rules.fedbuff(buffer_size=2), BUFFERED, id="fedbuff"),
    ],
)
def test_every_version_is_the_one_worked_by_hand(rule: AnyRule, expected: list[float]) -> None:
    _, versions = played(rule)
    assert versions == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_of_two_updates_that_arrive_at_once_that_of_the_round_begun_first_comes_first() -> None:
    arrivals, _ = played(rules.fedasync(0.5, "constant"))
    assert arrivals[-2:] == [(12.0, "B"), (12.0, "A")]  # B began at 8, A at 9
