"""Statistics belong to the server: they follow the clients' own values under every rule."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfeded import ClientUpdate, Decision, Rule, Server, Step, TrainTask, Work, rules
from asyncfeded.core.errors import RuleError, SettingError
from asyncfeded.core.messages import Refusal
from asyncfeded.core.rule import Arrival, no_state
from asyncfeded.core.vectors import Vector
from builders import answer, vector


def server_momentum(beta: float = 0.9) -> Rule[dict[str, Vector]]:
    """A rule written to the contract whose steps overshoot."""

    def init(parameters: Vector) -> dict[str, Vector]:
        return {"velocity": np.zeros_like(parameters)}

    def on_update(state: dict[str, Vector], arrival: Arrival) -> Decision[dict[str, Vector]]:
        velocity = beta * state["velocity"] + arrival.delta
        return Decision({"velocity": velocity}, arrival.work, Step(1.0, velocity))

    return Rule("server-momentum", Work(1), init, on_update)


RULES: dict[str, Rule[Any]] = {
    **{name: factory() for name, factory in rules.REGISTRY.items()},
    "server-momentum": server_momentum(),
}
INITIAL = (1.0, 10.0, -3.0)
"""One element that is trained and two statistics."""

values = st.floats(width=32, allow_nan=False, allow_infinity=False)
script_of_values = st.lists(
    st.tuples(st.sampled_from("abc"), st.floats(-10, 10, width=32).filter(bool), values, values),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None, max_examples=60)
@given(script=script_of_values)
def test_a_statistic_never_leaves_the_range_of_the_values_that_clients_reported(
    name: str, script: list[tuple[str, float, float, float]]
) -> None:
    server = Server(vector(*INITIAL), RULES[name], trained=1)
    tasks = {client: server.join(client) for client in "abc"}
    lowest, highest = vector(*INITIAL[1:]), vector(*INITIAL[1:])
    for client, trained, *own in script:
        if client not in tasks:
            continue
        task = tasks.pop(client)
        base = task.parameters[1:]
        with np.errstate(over="ignore"):
            change = vector(*own) - base
            reported = base + change
        update = ClientUpdate(client, task.version, np.concatenate([vector(trained), change]), 7, 1)
        receipt = server.receive(update)
        tasks |= {after.client_id: after for after in receipt.tasks}
        if receipt.accepted:
            lowest, highest = np.minimum(lowest, reported), np.maximum(highest, reported)
        assert (lowest <= server.parameters[1:]).all()
        assert (server.parameters[1:] <= highest).all()


def test_server_momentum_leaves_a_variance_between_the_clients_values() -> None:
    # Added up with momentum, 10 − 9, then 1 − 8.1, made −7.1 of a variance.
    server = Server(vector(0, 10), server_momentum(), trained=1)
    task = server.join("a")
    (task,) = server.receive(answer(task, [1, -9])).tasks
    assert server.parameters.tolist() == [1, 1]
    server.receive(answer(task, [1, 0]))
    assert server.parameters.tolist() == [pytest.approx(2.9), 1]


def seen_by(rule_sizes: list[int]) -> Rule[None]:
    def init(parameters: Vector) -> None:
        rule_sizes.append(parameters.size)

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        rule_sizes.extend(v.size for v in (arrival.delta, arrival.base, arrival.current))
        return Decision(None, Work(1), Step(1.0, arrival.delta))

    return Rule("seen", Work(1), init, on_update)


def test_a_rule_sees_the_trained_elements_alone() -> None:
    sizes: list[int] = []
    server = Server(vector(0, 1, 2), seen_by(sizes), trained=1)
    server.receive(answer(server.join("a"), [1, 1, 1]))
    assert sizes == [1, 1, 1, 1]


def test_fedavg_averages_statistics_by_examples() -> None:
    server = Server(vector(0, 10), rules.fedavg(), trained=1)
    a, b = server.join("a"), server.join("b")
    # a has 20 with 30 examples, b has 0 with 10: (600 + 0) / 40.
    server.receive(answer(a, [1, 10], num_examples=30))
    server.receive(answer(b, [1, -10], num_examples=10))
    assert server.parameters.tolist() == [1, 15]


def test_fedbuff_s_statistics_wait_for_its_step_as_its_updates_do() -> None:
    server = Server(vector(0, 8), rules.fedbuff(buffer_size=2), trained=1)
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [1, 8]))
    assert server.parameters.tolist() == [0, 8]
    # a has 16, b has 0, each weighs 1/2: 8 + (16 − 8)/2 + (0 − 8)/2.
    server.receive(answer(b, [1, -8]))
    assert server.parameters.tolist() == [1, 8]


def test_a_round_that_cannot_be_taken_leaves_no_trace_in_the_statistics() -> None:
    server = Server(vector(3e38, 5), rules.fedavg(), trained=1)
    task = server.join("a")
    receipt = server.receive(answer(task, [3e38, 10]))
    assert receipt.reason == Refusal.STEP_NOT_FINITE
    assert receipt.next_task is not None
    server.receive(answer(receipt.next_task, [-3e38, 1]))
    assert server.parameters.tolist() == [0, 6]


def test_exact_elements_are_the_last_client_s_and_are_not_averaged() -> None:
    server = Server(vector(0, 10, 7), rules.fedavg(), trained=1, exact=1)
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [1, 10, 58]))
    server.receive(answer(b, [1, -10, 35]))
    assert server.parameters.tolist() == [1, 10, 42]


def test_a_statistic_further_away_than_float32_reaches_is_refused() -> None:
    server = Server(vector(0, 3e38), rules.asyncfeded(), trained=1)
    assert server.receive(answer(server.join("a"), [1, 3e38])).reason == Refusal.NOT_FINITE
    assert server.parameters.tolist() == vector(0, 3e38).tolist()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), 1e300])
def test_a_rule_that_gives_an_impossible_weight_is_named(weight: float) -> None:
    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        return Decision(None, Work(1), Step(1.0, arrival.delta), weight=weight)

    server = Server(vector(0, 1), Rule("broken", Work(1), no_state, on_update), trained=1)
    task: TrainTask = server.join("a")
    with pytest.raises(RuleError, match="rule 'broken' gave a client the weight"):
        server.receive(answer(task, [1, 1]))


def test_more_exact_elements_than_statistics_are_refused() -> None:
    with pytest.raises(SettingError, match="exact must be from 0 to 1; given 2"):
        Server(vector(0, 0), rules.asyncfeded(), trained=1, exact=2)


@pytest.mark.parametrize("limb", [-1, 65536, 0.5, 1e30])
def test_exact_elements_that_are_no_parts_of_integers_are_refused(limb: float) -> None:
    server = Server(vector(0, 0), rules.asyncfeded(), trained=1, exact=1)
    assert server.receive(answer(server.join("a"), [1, limb])).reason == Refusal.OUT_OF_RANGE
    assert server.parameters.tolist() == [0, 0]
