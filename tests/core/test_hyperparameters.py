"""Hyperparameters: checked and noted by what the factory's signature says."""

from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Lt

from asyncfeded import Rule, Work, hyperparameters
from asyncfeded.core.errors import SettingError
from asyncfeded.core.hyperparameters import hyperparameters_of
from asyncfeded.core.rule import Arrival, Decision, no_state


@hyperparameters
def toy(
    rate: Annotated[float, Gt(0), Lt(2), "how far a step goes"] = 1.0,
    count: Annotated[int | None, Ge(1), "how many; none for all"] = None,
    mode: Annotated[Literal["up", "down"], "which way"] = "up",
    hidden: object = None,
) -> Rule[None]:
    """A rule that does nothing."""

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        return Decision(None, arrival.work)

    return Rule("toy", Work(1), no_state, on_update)


def test_what_is_given_is_noted_in_the_settings_as_python_s_own_numbers() -> None:
    rule = toy(rate=np.float32(0.5), count=np.int8(3))  # type: ignore[arg-type]
    assert rule.settings == {"rate": 0.5, "count": 3, "mode": "up"}
    assert {type(value) for value in rule.settings.values()} == {float, int, str}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate", 0, "rate must be above 0 and below 2; given 0"),
        ("rate", 2.0, "rate must be above 0 and below 2; given 2.0"),
        ("rate", float("nan"), "rate must be a finite number above 0 and below 2; given nan"),
        ("rate", "1", "rate must be a finite number above 0 and below 2; given '1'"),
        ("rate", True, "rate must be a finite number above 0 and below 2; given True"),
        ("rate", 10**400, "rate must be a finite number above 0 and below 2; given a huge number"),
        ("count", 0, "count must be at least 1; given 0"),
        ("count", 10**400, "count must be a whole number at least 1; given a huge number"),
        ("count", 1.5, "count must be a whole number at least 1; given 1.5"),
        ("mode", "left", "mode must be 'up' or 'down'; given 'left'"),
    ],
)
def test_what_is_out_of_range_is_named_with_its_limit(
    name: str, value: object, message: str
) -> None:
    with pytest.raises(SettingError) as caught:
        toy(**{name: value})  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_help_says_what_it_means_and_its_limits() -> None:
    known = hyperparameters_of(toy)
    assert list(known) == ["rate", "count", "mode"]
    assert known["rate"].help == "how far a step goes; above 0 and below 2"
    assert known["mode"].help == "which way"
    assert known["rate"].default == 1.0


def test_a_flag_is_true_or_false_and_a_choice_is_a_text() -> None:
    @hyperparameters
    def flagged(flag: Annotated[bool, "a flag"] = False) -> Rule[None]:
        return toy()

    assert flagged(flag=True).settings == {"flag": True}
    with pytest.raises(SettingError, match="flag must be true or false; given 1"):
        flagged(flag=1)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="mode must be 'up' or 'down'; given array"):
        toy(mode=np.array(["up"]))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="rate must be a finite number"):
        toy(rate=Fraction(10**400))  # type: ignore[arg-type]
