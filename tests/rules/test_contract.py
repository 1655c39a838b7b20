"""What every rule must do. A new rule is one more row of the table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfeded import Server, rules
from asyncfeded.contract import CHECKS, play
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work
from asyncfeded.core.vectors import norm_and_distance
from builders import answer, vector

ADAPTIVE = {
    *("fedadagrad", "fedadam", "fedyogi", "fedbuff-adagrad", "fedbuff-adam", "fedbuff-yogi"),
    *("fadas", "fadas-adaptive"),
}
EVERY_RULE: dict[str, Rule[Any]] = {name: factory() for name, factory in rules.REGISTRY.items()}

every_rule = pytest.mark.parametrize("name", EVERY_RULE)
finite = st.floats(-1e3, 1e3, width=32)
deltas = st.lists(
    st.tuples(st.sampled_from("abc"), finite, finite.filter(bool), st.integers(1, 99)),
    min_size=1,
    max_size=30,
)


@every_rule
def test_a_rule_is_named_as_in_the_registry_and_knows_its_settings(name: str) -> None:
    rule = EVERY_RULE[name]
    assert rule.name == name
    assert rules.REGISTRY[name](**rule.settings).settings == rule.settings


@pytest.mark.parametrize("check", CHECKS)
@every_rule
def test_a_rule_keeps_the_contract(name: str, check: str) -> None:
    CHECKS[check](lambda: EVERY_RULE[name])


@every_rule
@settings(deadline=None, max_examples=30)
@given(script=deltas)
def test_whatever_arrives_the_model_stays_finite_and_k_at_least_one(
    name: str, script: list[Any]
) -> None:
    server = Server(vector(1, -1), EVERY_RULE[name])
    for receipt in play(server, script):
        assert receipt.accepted
        assert all(task.epochs >= 1 for task in receipt.tasks)
    assert np.isfinite(server.parameters).all()
    assert server.stored_versions <= 3 + 1


@every_rule
@given(st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=8), st.integers(0, 50))
def test_a_rule_mutates_nothing_it_is_given(
    name: str, rows: list[tuple[float, float, float]], lag: int
) -> None:
    rule = EVERY_RULE[name]
    delta, base, current = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    delta[0] = 1
    copies = delta.copy(), base.copy(), current.copy()
    norms = norm_and_distance(delta, current, base)
    arrived = Arrival("a", delta, base, current, lag, 5, Work(10), *norms, clients=3, steps=4)
    state = rule.init(current)
    shown = repr(state)
    first = rule.on_update(state, arrived)
    assert repr(state) == shown
    again = rule.on_update(state, arrived)
    for given_array, copy in zip((delta, base, current), copies, strict=True):
        assert np.array_equal(given_array, copy)
    assert first.figures == again.figures
    assert first.work == again.work
    if first.step is not None and again.step is not None:
        assert first.step.scale == again.step.scale
        assert np.array_equal(first.step.direction, again.step.direction)


@every_rule
def test_a_single_client_with_a_constant_delta_moves_the_model_along_it(name: str) -> None:
    server = Server(vector(0, 0), EVERY_RULE[name])
    task = server.join("a")
    for _ in range(20):
        (task,) = server.receive(answer(task, [1, 2])).tasks
    x, y = server.parameters.tolist()
    assert y >= x > 0
    if name not in ADAPTIVE:  # those take a step of much the same length in every direction
        assert y == pytest.approx(2 * x, rel=1e-5)


def stateful(decide: Callable[[Any, Arrival], Decision[Any]], first: Any = None) -> Rule[Any]:
    return Rule("broken", Work(10), lambda _: first, decide)


def far(state: Any, arrived: Arrival) -> Decision[Any]:
    return Decision(state, Work(10), Step(1.0, arrived.delta))


def counted(calls: list[int]) -> Callable[[Any, Arrival], Decision[Any]]:
    def decide(state: Any, arrived: Arrival) -> Decision[Any]:
        calls.append(1)
        return Decision(state, Work(10), Step(1 / len(calls), arrived.delta))

    return decide


def grows(state: Any, arrived: Arrival) -> Decision[Any]:
    state["seen"] = state.get("seen", 0) + 1
    return far(state, arrived)


def backwards(state: Any, arrived: Arrival) -> Decision[Any]:
    return Decision(state, Work(10), Step(-1.0, arrived.delta))


def keeps_an_object(_: Any, arrived: Arrival) -> Decision[Any]:
    return far({"seen": {arrived.client_id}}, arrived)


def forgets_nothing_huge(state: Any, arrived: Arrival) -> Decision[Any]:
    largest = max(state["largest"], arrived.delta_norm)
    return Decision({"largest": largest}, Work(10), Step(1 / largest**2, arrived.delta))


@pytest.mark.parametrize(
    ("check", "rule"),
    [
        ("returns a rule", "no rule"),
        ("repeats to the bit", stateful(counted([]))),
        ("changes nothing it is given", stateful(grows, {})),
        ("keeps old states usable", stateful(grows, {})),
        ("has a state of plain data", stateful(keeps_an_object, {})),
        ("learns from a single client", stateful(backwards)),
        ("recovers from huge updates", stateful(forgets_nothing_huge, {"largest": 1e-9})),
    ],
)
def test_a_rule_that_breaks_the_contract_is_found(check: str, rule: Any) -> None:
    with pytest.raises(AssertionError, match=r"\w+ \w+"):
        CHECKS[check](lambda: rule)
