import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.runtime.deadlines import REMEMBERED_ROUNDS, Deadlines


def deadlines() -> Deadlines:
    return Deadlines(patience=5.0, first_seconds=300.0, least_seconds=1.0)


def test_a_client_that_is_not_known_yet_has_the_first_allowance() -> None:
    assert deadlines().allowance("a", 10) == 300.0


def test_an_allowance_follows_the_longest_of_the_last_rounds_and_the_epochs() -> None:
    known = deadlines()
    for seconds in (2.0, 6.0, 4.0):
        known.answered("a", 10, seconds, 0.0)
    assert known.allowance("a", 10) == pytest.approx(30.0)
    assert known.allowance("a", 20) == pytest.approx(60.0)
    assert known.allowance("b", 10) == 300.0
    for _ in range(REMEMBERED_ROUNDS):
        known.answered("a", 10, 1.0, 0.0)
    assert known.allowance("a", 10) == pytest.approx(5.0)


def test_what_is_not_training_does_not_grow_with_the_epochs() -> None:
    known = deadlines()
    known.answered("a", 20, 2.0, 8.0)
    assert known.allowance("a", 20) == pytest.approx(5 * (2.0 + 8.0))
    assert known.allowance("a", 1) == pytest.approx(5 * (0.1 + 8.0))


def test_short_rounds_have_the_least_allowance() -> None:
    known = deadlines()
    known.answered("a", 10, 0.001, 0.0)
    assert known.allowance("a", 1) == 1.0


def test_every_miss_doubles_the_allowance_until_an_answer() -> None:
    known = deadlines()
    known.answered("a", 1, 2.0, 0.0)
    known.missed("a")
    known.missed("a")
    assert known.allowance("a", 1) == pytest.approx(40.0)
    known.answered("a", 1, 2.0, 0.0)
    assert known.allowance("a", 1) == pytest.approx(10.0)


def test_patience_is_at_least_1() -> None:
    with pytest.raises(SettingError, match=r"patience must be at least 1; given 0.5"):
        Deadlines(patience=0.5)


def test_a_client_that_misses_its_first_deadline_is_given_more_time_too() -> None:
    known = deadlines()
    known.missed("a")
    assert known.allowance("a", 1) == 600.0
