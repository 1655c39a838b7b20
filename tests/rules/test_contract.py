"""What every rule must do. A new rule is one more row of the table."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfeded import Refusal, Server, TrainTask, rules
from asyncfeded.core.rule import Arrival, Rule, Work
from asyncfeded.core.tree import check_tree
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


def play(server: Server, script: list[tuple[str, float, float, int]]) -> list[Any]:
    """Let three clients report in the order of the script, as far as it is their turn."""
    tasks: dict[str, TrainTask] = {name: server.join(name) for name in "abc"}
    receipts = []
    for name, first, second, examples in script:
        if name in tasks:
            receipt = server.receive(answer(tasks.pop(name), [first, second], examples))
            tasks |= {task.client_id: task for task in receipt.tasks}
            receipts.append(receipt)
    return receipts


@every_rule
def test_a_rule_is_named_as_in_the_registry_and_knows_its_settings(name: str) -> None:
    rule = EVERY_RULE[name]
    assert rule.name == name
    assert rules.REGISTRY[name](**rule.settings).settings == rule.settings


@every_rule
@settings(deadline=None, max_examples=30)
@given(script=deltas)
def test_the_same_calls_give_the_same_bits(name: str, script: list[Any]) -> None:
    first, second = (Server(vector(1, -1), EVERY_RULE[name]) for _ in range(2))
    for left, right in zip(play(first, script), play(second, script), strict=True):
        assert left.version == right.version
        assert left.figures == right.figures
    assert first.parameters.tobytes() == second.parameters.tobytes()


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
def test_an_old_state_can_be_used_again_after_a_newer_one_was_made(name: str) -> None:
    rule = EVERY_RULE[name]

    def arrived(delta: float) -> Arrival:
        return Arrival("a", vector(delta), vector(0), vector(0), 0, 1, Work(10), abs(delta), 0.0)

    one = rule.on_update(rule.init(vector(0)), arrived(1)).state
    shown = repr(one)
    later = rule.on_update(one, arrived(3)).state
    if rule.on_leave is not None:
        rule.on_leave(later, "a")
        rule.on_leave(one, "a")
        rule.on_leave(one, "a stranger")
    assert repr(one) == shown
    repeated = [rule.on_update(one, arrived(2)) for _ in range(2)]
    assert repr(repeated[0]) == repr(repeated[1])


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


@every_rule
@settings(deadline=None, max_examples=30)
@given(script=deltas)
def test_every_state_is_plain_data_that_can_be_saved(name: str, script: list[Any]) -> None:
    server = Server(vector(1, -1), EVERY_RULE[name])
    play(server, script)
    server.leave("b")
    check_tree(name, server._state.now)


@every_rule
def test_a_client_that_leaves_and_returns_is_served_again(name: str) -> None:
    server = Server(vector(0, 0), EVERY_RULE[name])
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [1, 2]))
    server.leave("a")
    server.leave("b")
    again = server.join("a")
    assert server.receive(answer(again, [1, 2])).accepted
    assert np.isfinite(server.parameters).all()
    assert server.receive(answer(b, [1, 2])).reason == Refusal.UNKNOWN_CLIENT


@every_rule
def test_a_rule_recovers_from_updates_as_large_as_a_float32_holds(name: str) -> None:
    """One client sends 3e38 twenty times; then honest updates move the model again."""
    server = Server(vector(0, 0), EVERY_RULE[name])
    hostile = server.join("hostile")
    for _ in range(20):
        (hostile,) = server.receive(answer(hostile, [3e38, 1])).tasks
    server.leave("hostile")
    task = server.join("honest")
    before = server.parameters[1].item()
    accepted = 0
    for _ in range(60):
        receipt = server.receive(answer(task, [1, 1]))
        accepted += receipt.accepted
        (task,) = receipt.tasks
    assert accepted >= 40
    assert server.parameters[1].item() > before


@every_rule
def test_a_step_that_is_not_finite_is_refused_and_the_rule_goes_on_from_the_state_before(
    name: str,
) -> None:
    """3e38 + 3e38 is more than a float32 holds; where a rule adds that up, it is refused."""
    tried, untried = (Server(vector(3e38, 0), EVERY_RULE[name]) for _ in range(2))
    tasks = {server: server.join("a") for server in (tried, untried)}
    receipt = tried.receive(answer(tasks[tried], [3e38, 1]))
    if receipt.accepted:  # kept for later, or scaled down
        return
    assert receipt.reason == Refusal.STEP_NOT_FINITE
    assert repr(tried._state.now) == repr(untried._state.now)
    assert tried.parameters.tolist() == untried.parameters.tolist()
