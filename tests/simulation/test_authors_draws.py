"""The authors' hangs: their own draws, and the law that they follow."""

import numpy as np
import pytest

from asyncfeded.on_demand import ClientNames
from asyncfeded.simulation.authors_draws import authors_hangs
from asyncfeded.simulation.suspension import drawn_loss

NAMES = list(ClientNames(10))

AUTHORS_QUANTILES = (0.14, 0.73, 1.42, 2.2)
"""Of the authors' hangs in units of the round, at 5, 25, 50 and 75 %."""


def lost(client: str, suspension: float, rounds: int) -> str:
    hangs = authors_hangs(NAMES, suspension, rounds=rounds)
    return "".join("1" if (client, number) in hangs else "0" for number in range(rounds))


def test_the_same_rounds_are_lost_as_in_the_authors_rows() -> None:
    assert lost("client-0", 0.5, 32) == "01101000111000101100111101101010"
    assert lost("client-9", 0.5, 32) == "00001110111001011011001001000110"
    assert lost("client-4", 0.1, 32) == "10000000000000000100010000000000"
    assert lost("client-4", 0.9, 16) == "1010111011111111"


@pytest.mark.parametrize(
    ("suspension", "clients"),
    [(0.0, ""), (0.1, "4"), (0.5, "45"), (0.6, "045"), (0.9, "0123456789")],
)
def test_the_same_clients_lose_their_first_round(suspension: float, clients: str) -> None:
    hangs = authors_hangs(NAMES, suspension, rounds=1)
    assert sorted(hangs) == [(f"client-{number}", 0) for number in clients]


def test_hangs_are_as_long_as_in_the_authors_rows() -> None:
    # Client 0 at P = 0.5 on Synthetic-1-1 with FedAvg, rounds 1, 2, 4, 8, 9 and 10.
    hangs = authors_hangs(NAMES, 0.5, rounds=11)
    found = [hang for (client, _), hang in hangs.items() if client == "client-0"]
    assert found == pytest.approx([1.51, 1.51, 0.27, 0.04, 0.56, 1.39], abs=0.03)


@pytest.mark.parametrize("whose", ["drawn", "authors"])
def test_hangs_have_the_quantiles_of_the_authors_rows(whose: str) -> None:
    if whose == "drawn":
        draw = np.random.default_rng(0)
        losses = (drawn_loss(draw, 0.5) for _ in range(20_000))
        hangs = [loss.hang_rounds for loss in losses if loss is not None]
    else:
        hangs = list(authors_hangs(NAMES, 0.5, rounds=2_000).values())
    # U(0, 3) has 0.15, 0.75, 1.5 and 2.25; U(0, 5.4) would have 0.27, 1.35, 2.7 and 4.05.
    found = np.quantile(hangs, [0.05, 0.25, 0.5, 0.75])
    assert found == pytest.approx(AUTHORS_QUANTILES, abs=0.1)
