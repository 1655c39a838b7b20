"""FedAsync against updates worked by hand."""

import pytest

from asyncfeded import Server, rules
from asyncfeded.core.errors import SettingError
from builders import answer, arrival, vector


def alpha_at(lag: int, **settings: object) -> float:
    rule = rules.fedasync(**settings)  # type: ignore[arg-type]
    decision = rule.on_update(None, arrival(delta=[1], base=[0], current=[0], lag=lag))
    return decision.figures["learning_rate"]


def test_two_updates_worked_by_hand() -> None:
    # α = 0.5, both from x_1 = 0.
    # a's model is 4:  x_2 = 0.5 · 0 + 0.5 · 4 = 2.
    # b's model is 10: x_3 = 0.5 · 2 + 0.5 · 10 = 6. The stale base does not enter.
    server = Server(vector(0), rules.fedasync(alpha=0.5))
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [4]))
    assert server.parameters.tolist() == [2]
    receipt = server.receive(answer(b, [10]))
    assert server.parameters.tolist() == [6]
    assert (receipt.lag, receipt.learning_rate, receipt.staleness) == (1, 0.5, None)


def test_hinge_is_flat_up_to_b_and_then_falls_as_one_over_a_lag_plus_one() -> None:
    # a = 5, b = 5: s(5) = 1, s(6) = 1/(5·1 + 1) = 1/6, s(10) = 1/(5·5 + 1) = 1/26.
    weights = [alpha_at(lag, alpha=0.6, weighting="hinge", a=5, b=5) for lag in (0, 5, 6, 10)]
    assert weights == pytest.approx([0.6, 0.6, 0.1, 0.6 / 26])


def test_polynomial_falls_as_a_power_of_the_lag() -> None:
    # a = 0.5: s(0) = 1, s(3) = 4^−0.5 = 1/2, s(8) = 9^−0.5 = 1/3.
    weights = [alpha_at(lag, alpha=0.6, weighting="polynomial", a=0.5) for lag in (0, 3, 8)]
    assert weights == pytest.approx([0.6, 0.3, 0.2])


def test_polynomial_with_exponent_zero_is_constant() -> None:
    for lag in (0, 1, 17, 1000):
        assert alpha_at(lag, weighting="polynomial", a=0) == alpha_at(lag)


def test_a_stale_update_does_not_weigh_down_the_next_one() -> None:
    server = Server(vector(0), rules.fedasync(alpha=0.5, weighting="hinge", a=1, b=0))
    slow = server.join("slow")
    fast = server.join("fast")
    for _ in range(3):
        receipt = server.receive(answer(fast, [1]))
        assert receipt.next_task is not None
        fast = receipt.next_task
    assert server.receive(answer(slow, [1])).learning_rate == pytest.approx(0.5 / 4)
    # Since fast's task one version has been made: lag 1, s = 1/2. Then lag 0 again.
    receipt = server.receive(answer(fast, [1]))
    assert receipt.learning_rate == pytest.approx(0.25)
    assert receipt.next_task is not None
    assert server.receive(answer(receipt.next_task, [1])).learning_rate == 0.5


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("alpha", 0.0),
        ("alpha", 1.5),
        ("a", -1.0),
        ("b", -1.0),
        ("weighting", "cosine"),
        ("initial_epochs", 0),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(setting: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"^{setting} must be .*; given {value!r}$"):
        rules.fedasync(**{"weighting": "hinge", setting: value})  # type: ignore[arg-type]
