"""Which devices, start-up and hangs a run gets from its settings."""

from typing import Any

import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.run import resolve, run_experiment
from asyncfeded.experiment.settings import run_settings
from asyncfeded.runtime.events import Event, Received, RoundLost


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clients": 4}, "hang_draws 'authors' needs the paper's devices, of 10 clients"),
        ({"hangs": "delay"}, "hangs must be 'lose' where hang_draws is 'authors'; given 'delay'"),
        ({"hangs_from": "x.csv"}, "hangs_from must be left out where hang_draws is 'authors'"),
    ],
)
def test_the_authors_draws_are_refused_where_they_mean_nothing(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        resolve(run_settings({"hang_draws": "authors", **given}))


def test_with_the_authors_draws_every_seed_loses_the_same_rounds() -> None:
    def fates(seed: int) -> dict[tuple[str, int], bool]:
        heard: dict[tuple[str, int], bool] = {}

        def note(event: Event, _: object) -> None:
            match event:
                case Received(round=int() as number, receipt=receipt):
                    heard[receipt.client_id, number] = False
                case RoundLost(client_id=client, round=number):
                    heard[client, number] = True

        given = {"hang_draws": "authors", "suspension": 0.5, "seconds": 1.0, "start_up": 0}
        run_experiment(run_settings({**given, "max_examples": 20, "seed": seed}), [note])
        return heard

    first, second = fates(0), fates(1)
    both = first.keys() & second.keys()
    assert len(both) > 10
    assert {key: first[key] for key in both} == {key: second[key] for key in both}
    # The authors' client 5 at P = 0.5: 1101…
    assert [first["client-5", number] for number in range(4)] == [True, True, False, True]
