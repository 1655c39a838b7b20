"""What a journal holds is a signal in its plain form, or it is refused."""

from typing import Any

import numpy as np
import pytest

from asyncfeded import ClientUpdate, StateError
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Signal
from asyncfeded.store.codec import encode
from asyncfeded.store.signals import NO_DELTA, WRONG_LENGTH, decoded, encoded, plain_update
from builders import vector

FIELDS: dict[str, Any] = {
    "client_id": "a",
    "version": 1,
    "delta": vector(3, 4),
    "num_examples": 10,
    "epochs": 2,
    "round": 0,
    "steps": None,
    "figures": {"loss": 0.5},
}


def arriving(**changes: Any) -> Signal:
    return Arriving(1.5, ClientUpdate(**{**FIELDS, **changes}), 0.25)


@pytest.mark.parametrize(
    "signal",
    [
        Joining(0.0, "a"),
        Losing(1.0, "a", 3, "suspended"),
        Leaving(2.0, "a", None, 4),
        Leaving(2.0, "a", "process lost", None),
        arriving(),
        arriving(delta=NO_DELTA, version="?", figures={"": "?"}),
        arriving(delta=WRONG_LENGTH, figures={"loss": float("nan")}),
    ],
)
def test_a_signal_comes_back(signal: Signal) -> None:
    assert encoded(decoded(encoded(signal))) == encoded(signal)


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": []},
        {"client_id": None},
        {"version": 1.5},
        {"version": True},
        {"version": 2**60},
        {"delta": [3.0, 4.0]},
        {"delta": np.zeros((2, 1), np.float32)},
        {"delta": np.zeros(2)},
        {"num_examples": np.zeros(2)},
        {"figures": {"loss": np.zeros(2)}},
        {"figures": {"loss": "0.5"}},
        {"figures": None},
    ],
)
def test_an_update_that_is_not_plain_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="a record is no signal of a client"):
        decoded(encode(["arriving", 1.5, {**FIELDS, **changes}, 0.25]))


@pytest.mark.parametrize(
    "tree",
    [
        None,
        ["joining", 1.0],
        ["joining", float("nan"), "a"],
        ["joining", 1, "a"],
        ["losing", 1.0, "a", True, "why"],
        ["leaving", float("inf"), "a", None, None],
        ["arriving", 1.0, {"client_id": "a"}, None],
        ["arriving", 1.0, FIELDS, float("inf")],
        ["quiet", 1.0, 2.0],
    ],
)
def test_what_is_no_signal_is_refused(tree: Any) -> None:
    with pytest.raises(StateError, match="a record is no signal of a client"):
        decoded(encode(tree))


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": 7, "version": "1", "delta": [1.0]},
        {"num_examples": 10**400, "epochs": float("nan"), "figures": {"loss": "low"}},
        {"delta": np.zeros(5, np.float32), "figures": 3, "round": object()},
    ],
)
def test_whatever_a_client_sends_has_a_plain_form_that_can_be_written(
    changes: dict[str, Any],
) -> None:
    sent = Arriving(1.0, plain_update(ClientUpdate(**{**FIELDS, **changes}), 2), None)
    assert encoded(decoded(encoded(sent))) == encoded(sent)
