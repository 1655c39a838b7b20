"""The examples in docstrings, and what the server makes of a rule's state."""

import doctest
from types import ModuleType

import numpy as np
import pytest

from asyncfeded import Decision, Rule, Server, Step, Work, rules
from asyncfeded.core import hyperparameters, server
from asyncfeded.core import rule as contract
from asyncfeded.core.errors import ClientStateError, RuleError, SettingError
from asyncfeded.core.hyperparameters import hyperparameters_of
from asyncfeded.core.rule import Arrival
from asyncfeded.core.tree import check_tree
from builders import answer, vector


@pytest.mark.parametrize("module", [contract, server, hyperparameters])
def test_the_example_of_a_docstring_runs_as_printed(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted >= 6
    assert outcome.failed == 0


def test_a_state_that_cannot_be_saved_is_refused_when_the_server_is_made() -> None:
    def on_update(state: object, arrival: Arrival) -> Decision[object]:
        return Decision(state, arrival.work)

    rule = Rule("set", Work(1), lambda _: {"seen": {"a", "b"}}, on_update)
    with pytest.raises(RuleError, match=r"rule 'set': its state\['seen'\] must be an array of"):
        Server(vector(0), rule)


@pytest.mark.parametrize("bad", [object(), [1], {1: 2}, np.array([object()]), 1j])
def test_what_is_not_plain_data_is_no_state(bad: object) -> None:
    with pytest.raises(RuleError, match="rule 'mine'"):
        check_tree("mine", {"deep": {"er": bad}})


def told() -> tuple[Rule[None], list[Arrival]]:
    arrivals: list[Arrival] = []

    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        arrivals.append(arrival)
        return Decision(None, arrival.work)

    return Rule("told", Work(3), contract.no_state, on_update), arrivals


def test_an_arrival_tells_who_is_at_work_and_how_many_there_are() -> None:
    rule, arrivals = told()
    server = Server(vector(0), rule)
    tasks = [server.join(name) for name in "abc"]
    server.leave("c")
    receipt = server.receive(answer(tasks[0], [1]))
    assert receipt.next_task is not None
    server.hand_over(receipt.next_task, "d")  # a rests: it is in the federation, and not at work
    server.leave("d")
    server.receive(answer(tasks[1], [1]))
    assert [(a.clients_at_work, a.clients) for a in arrivals] == [(2, 2), (1, 2)]


def test_of_a_known_population_those_who_left_are_missing() -> None:
    rule, arrivals = told()
    server = Server(vector(0), rule, population=100)
    task, _ = server.join("a"), server.join("b")
    (task,) = server.receive(answer(task, [1])).tasks
    server.leave("b")
    server.receive(answer(task, [1]))
    server.join("b")
    (task,) = server.receive(answer(server.join("c"), [1])).tasks
    assert [a.clients for a in arrivals] == [100, 99, 100]


def test_an_arrival_has_what_the_client_and_the_transport_say() -> None:
    rule, arrivals = told()
    server = Server(vector(0), rule)
    task = server.join("a")
    update = answer(task, [1])
    said = type(update)("a", 1, update.delta, 5, 3, 0, steps=np.int64(12), figures={"loss": 0.25})  # type: ignore[arg-type]
    server.receive(said, held_seconds=1.5)
    (arrival,) = arrivals
    assert (arrival.steps, arrival.held_seconds, arrival.reported) == (12, 1.5, {"loss": 0.25})
    assert type(arrival.steps) is int


def test_a_client_that_leaves_is_told_to_the_rule_and_one_that_rests_is_not() -> None:
    gone: list[str] = []

    def on_update(state: int, arrival: Arrival) -> Decision[int]:
        return Decision(state, arrival.work)

    def on_leave(state: int, client_id: str) -> int:
        gone.append(client_id)
        return state + 1

    rule = Rule("told", Work(1), lambda _: 0, on_update, on_leave=on_leave)
    server = Server(vector(0), rule)
    server.hand_over(server.join("b"), "a")
    server.leave("a")
    assert set(gone) == {"a"}
    assert server._state.now == 1
    server.leave("b")  # a client that rests can leave too
    assert set(gone) == {"a", "b"}
    assert server._state.now == 2
    with pytest.raises(ClientStateError, match="'b' does not take part"):
        server.leave("b")


def test_an_error_of_on_leave_leaves_the_client_where_it_was() -> None:
    def on_update(state: None, arrival: Arrival) -> Decision[None]:
        return Decision(state, arrival.work, Step(1.0, arrival.delta))

    def on_leave(_: None, client_id: str) -> None:
        raise KeyError(client_id)

    rule = Rule("broken", Work(1), contract.no_state, on_update, on_leave=on_leave)
    server = Server(vector(0), rule)
    task = server.join("a")
    with pytest.raises(KeyError):
        server.leave("a")
    assert server.receive(answer(task, [1])).accepted


@pytest.mark.parametrize("scale", [10**400, "1", None])
def test_a_scale_that_does_not_fit_a_float_is_named_and_the_client_keeps_its_task(
    scale: object,
) -> None:
    def on_update(state: None, arrival: Arrival) -> Decision[None]:
        return Decision(state, arrival.work, Step(scale, arrival.delta))  # type: ignore[arg-type]

    server = Server(vector(0), Rule("broken", Work(1), contract.no_state, on_update))
    task = server.join("a")
    with pytest.raises(RuleError, match="rule 'broken' returned a scale that does not fit"):
        server.receive(answer(task, [1]))
    assert server.at_work == ("a",)


@pytest.mark.parametrize("population", [-1, 2.5, float("nan"), "x", True])
def test_a_population_is_a_whole_number(population: object) -> None:
    with pytest.raises(SettingError, match="population must be a whole number, at least 0"):
        Server(vector(0), rules.asyncfeded(), population=population)  # type: ignore[arg-type]


def test_every_rule_of_the_registry_has_a_docstring_and_a_limit_for_every_number() -> None:
    for name, factory in rules.REGISTRY.items():
        assert factory.__doc__, name
        for hyperparameter in hyperparameters_of(factory).values():
            assert hyperparameter.limits or hyperparameter.type is not float, hyperparameter
