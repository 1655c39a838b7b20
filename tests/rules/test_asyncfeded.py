"""AsyncFedED against updates worked by hand, and its invariants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfeded import Server, rules
from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import norm
from builders import answer, arrival, vector


def test_three_updates_worked_by_hand() -> None:
    # λ = ε = 5, γ̄ = 3, κ = 1, K = 10. Both clients start from x_1 = (0, 0).
    server = Server(vector(0, 0), rules.asyncfeded(lam=5, eps=5, gamma_bar=3, kappa=1))
    a, b = server.join("a"), server.join("b")

    # 1. a brings (6, 8), ‖Δ‖ = 10. Nobody was before it: γ = 0, η = 5/5 = 1.
    #    x_2 = (6, 8), K_a = 10 + floor(3 · 1) = 13.
    first = server.receive(answer(a, [6, 8]))
    assert (first.staleness, first.learning_rate) == (0.0, 1.0)
    assert server.parameters.tolist() == [6, 8]
    assert first.next_task is not None
    assert first.next_task.epochs == 13

    # 2. b brings (0, 2) from x_1. ‖x_2 − x_1‖ = 10, ‖Δ‖ = 2: γ = 5, η = 5/(5 + 5) = 0.5.
    #    x_3 = (6, 8) + 0.5 · (0, 2) = (6, 9), K_b = 10 + floor(3 − 5) = 8.
    second = server.receive(answer(b, [0, 2]))
    assert (second.staleness, second.learning_rate) == (5.0, 0.5)
    assert server.parameters.tolist() == [6, 9]
    assert second.next_task is not None
    assert second.next_task.epochs == 8

    # 3. a brings (-4, 0) from x_2. ‖x_3 − x_2‖ = 1, ‖Δ‖ = 4: γ = 0.25, η = 5/5.25 = 20/21.
    #    x_4 = (6 − 80/21, 9), K_a = 13 + floor(2.75) = 15.
    third = server.receive(answer(first.next_task, [-4, 0]))
    assert (third.staleness, third.learning_rate) == (0.25, 5 / 5.25)
    np.testing.assert_allclose(server.parameters, [6 - 80 / 21, 9], rtol=1e-6)
    assert third.next_task is not None
    assert third.next_task.epochs == 15


@pytest.mark.parametrize(
    ("staleness", "floor", "carry"),
    # κ = 0.05, γ̄ = 3: the change is (3 − γ) · 0.05.
    [
        (0.0, 10, 10.15),  # +0.15: floor gives 0
        (3.0, 10, 10.0),  # 0
        (4.0, 9, 9.95),  # −0.05: floor gives −1
        (43.0, 8, 8.0),  # −2 exactly
        (1e9, 1, 1),  # never below 1
    ],
)
def test_floor_is_equation_8_as_printed_and_carry_keeps_the_fraction(
    staleness: float, floor: float, carry: float
) -> None:
    late = arrival(delta=[1], base=[0], current=[staleness])
    for rounding, expected in (("floor", floor), ("carry", carry)):
        rule = rules.asyncfeded(kappa=0.05, rounding=rounding)  # type: ignore[arg-type]
        assert rule.on_update(None, late).work.epochs == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("distance", "staleness", "epochs"),
    # ‖Δ‖ = 1, γ̄ = 3, κ = 1, K = 10; γ = distance².
    [(0.5, 0.25, 12), (2.0, 4.0, 9), (5.0, 25.0, 1), (1e38, 1e76, 1)],
)
def test_power_2_squares_the_ratio_for_the_step_and_for_k(
    distance: float, staleness: float, epochs: float
) -> None:
    late = arrival(delta=[1], base=[0], current=[distance])
    decision = rules.asyncfeded(lam=5, eps=5, power=2).on_update(None, late)
    assert decision.figures["staleness"] == pytest.approx(staleness, rel=1e-6)
    assert decision.step is not None
    assert decision.step.scale == pytest.approx(5 / (staleness + 5), rel=1e-6)
    assert decision.work.epochs == epochs


def test_carried_fractions_add_up_to_a_whole_epoch() -> None:
    # Alone, γ = 0: K grows by 3 · 0.05 = 0.15 a round, so the 7th makes it 11.05.
    server = Server(vector(0), rules.asyncfeded(kappa=0.05, rounding="carry"))
    task, epochs = server.join("a"), []
    for _ in range(8):
        receipt = server.receive(answer(task, [1]))
        assert receipt.next_task is not None
        task = receipt.next_task
        epochs.append(task.epochs)
    assert epochs == [10] * 6 + [11] * 2


def test_kappa_zero_keeps_every_client_s_epochs() -> None:
    rule = rules.asyncfeded(kappa=0, initial_epochs=15)
    assert rule.first_work.epochs == 15
    for distance in (0, 3, 1e6):
        late = arrival(delta=[1], base=[0], current=[distance], epochs=15)
        assert rule.on_update(None, late).work.epochs == 15


def test_a_maximum_bounds_the_epochs() -> None:
    rule = rules.asyncfeded(gamma_bar=5, kappa=1, max_epochs=12)
    fresh = arrival(delta=[1], base=[0], current=[0], lag=0)
    assert rule.on_update(None, fresh).work.epochs == 12


def test_a_stale_update_moves_the_model_less_than_a_fresh_one() -> None:
    rule = rules.asyncfeded()
    fresh = rule.on_update(None, arrival(delta=[1], base=[0], current=[0], lag=0)).step
    stale = rule.on_update(None, arrival(delta=[1], base=[0], current=[4])).step
    assert fresh is not None
    assert stale is not None
    assert stale.scale < fresh.scale


@pytest.mark.parametrize(("scale", "ratio"), [(5.0, 15.1), (1.0, 30.8)])
def test_a_tenfold_delta_moves_the_model_much_more_than_tenfold(scale: float, ratio: float) -> None:
    # γ = 3 falls to 0.3, so η grows too: 10 · (3 + ε)/(0.3 + ε). Known, and worth a guard.
    rule = rules.asyncfeded(lam=scale, eps=scale)
    moves = []
    for size in (1.0, 10.0):
        step = rule.on_update(None, arrival(delta=[size], base=[0], current=[3])).step
        assert step is not None
        moves.append(step.scale * size)
    assert moves[1] / moves[0] == pytest.approx(ratio, abs=0.05)


finite = st.floats(-1e6, 1e6, width=32)
pairs = st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=20)


@given(
    pairs,
    st.floats(0.01, 100),
    st.floats(0.01, 100),
    st.floats(0, 10),
    st.floats(0, 10),
    st.integers(1, 1000),
    st.sampled_from(["floor", "carry"]),
)
def test_a_step_is_at_most_lambda_over_epsilon_times_its_delta_and_k_at_least_one(
    rows: list[tuple[float, float, float]],
    lam: float,
    eps: float,
    gamma_bar: float,
    kappa: float,
    epochs: int,
    rounding: str,
) -> None:
    delta, base, current = (list(column) for column in zip(*rows, strict=True))
    delta[0] = delta[0] or 1.0
    late = arrival(delta, base, current, epochs=epochs)
    rule = rules.asyncfeded(lam, eps, gamma_bar, kappa, rounding=rounding)  # type: ignore[arg-type]
    decision = rule.on_update(None, late)
    assert decision.step is not None
    assert 0 < decision.step.scale <= lam / eps
    assert norm(decision.step.direction) == late.delta_norm
    assert decision.work.epochs >= 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("lam", 0.0),
        ("lam", float("inf")),
        ("eps", 0.0),
        ("eps", float("nan")),
        ("gamma_bar", -1.0),
        ("kappa", -0.1),
        ("initial_epochs", 0),
        ("rounding", "ceil"),
        ("max_epochs", 9),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(setting: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"^{setting} must be .*; given {value!r}$"):
        rules.asyncfeded(**{setting: value})  # type: ignore[arg-type]
