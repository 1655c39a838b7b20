"""The server as a state machine: joins, leases, rounds, and memory."""

from dataclasses import replace

import numpy as np
import pytest

from asyncfeded import Refusal, Server, TrainTask, VersionHistory, rules
from asyncfeded.core.errors import ClientStateError, RuleError, SettingError
from asyncfeded.core.rule import Arrival, Decision, Rule, Step, Work, no_state
from builders import answer, vector


def test_versions_start_at_one_and_every_update_makes_the_next() -> None:
    server = Server(vector(0, 0), rules.asyncfeded(lam=1, eps=1))
    task = server.join("a")
    assert (task.version, task.epochs, task.round) == (1, 10, 0)
    receipt = server.receive(answer(task, [1, 2]))
    assert (receipt.accepted, receipt.version, server.version) == (True, 2, 2)
    assert server.parameters.tolist() == [1, 2]
    assert receipt.next_task is not None
    assert (receipt.next_task.version, receipt.next_task.round) == (2, 1)


def test_a_fresh_update_has_no_staleness_and_a_late_one_has() -> None:
    server = Server(vector(0, 0), rules.asyncfeded(lam=1, eps=1, gamma_bar=3, kappa=1))
    fast, slow = server.join("fast"), server.join("slow")
    assert server.receive(answer(fast, [3, 4])).staleness == 0
    # x_2 = (3, 4) lies 5 from x_1; the slow delta has norm 2.5: γ = 2, η = 1/3, K = 10 + 1.
    late = server.receive(answer(slow, [1.5, 2]))
    assert late.staleness == 2.0
    assert late.learning_rate == 1 / 3
    assert late.lag == 1
    assert late.next_task is not None
    assert late.next_task.epochs == 11
    np.testing.assert_allclose(server.parameters, [3.5, 4 + 2 / 3], rtol=1e-7)


def test_a_model_that_moves_further_than_float32_reaches_does_not_stop_the_server() -> None:
    # x: 3e38, 0, −3e38. The last update started 6e38 from there, more than a float32 holds.
    server = Server(vector(3e38), rules.asyncfeded(lam=1, eps=1))
    late = server.join("late")
    for name in ("a", "b"):
        assert server.receive(answer(server.join(name), [-3e38])).accepted
    receipt = server.receive(answer(late, [1e-30]))
    assert receipt.accepted
    assert receipt.staleness == pytest.approx(6e68)
    assert receipt.next_task is not None
    assert receipt.next_task.epochs == 1


def test_a_reader_of_the_parameters_keeps_what_they_read() -> None:
    server = Server(vector(0, 0), rules.asyncfeded(lam=1, eps=1))
    task = server.join("a")
    first = server.parameters
    for _ in range(20):
        receipt = server.receive(answer(task, [1, 1]))
        assert receipt.next_task is not None
        task = receipt.next_task
    assert first.tolist() == [0, 0]


def test_the_initial_vector_stays_the_callers() -> None:
    initial = vector(1, 2)
    server = Server(initial, rules.asyncfeded())
    initial[:] = 7
    assert server.parameters.tolist() == [1, 2]


@pytest.mark.parametrize("rule", [rules.asyncfeded(), rules.fedbuff(buffer_size=3)])
def test_memory_holds_at_most_one_version_per_client_at_work(rule: Rule[object]) -> None:
    server = Server(np.zeros(50, np.float32), rule)
    draw = np.random.default_rng(0)
    tasks = {name: server.join(name) for name in "abcdefg"}
    most = 0
    for _ in range(5000):
        name = "abcdefg"[int(draw.integers(7)) if draw.random() < 0.9 else 0]
        receipt = server.receive(answer(tasks[name], draw.normal(size=50).tolist()))
        assert receipt.next_task is not None
        tasks[name] = receipt.next_task
        most = max(most, server.stored_versions)
    assert server.accepted == 5000
    assert 2 < most <= len(tasks)


def test_keeping_everything_stores_every_version_as_the_paper_does() -> None:
    server = Server(vector(0), rules.asyncfeded(), history=VersionHistory("everything"))
    task = server.join("a")
    for _ in range(50):
        receipt = server.receive(answer(task, [1]))
        assert receipt.next_task is not None
        task = receipt.next_task
    assert server.stored_versions == 51


def test_a_released_version_lends_its_memory_to_the_next() -> None:
    server = Server(np.zeros(1000, np.float32), rules.asyncfeded())
    task = server.join("a")
    delta = np.ones(1000).tolist()
    addresses = set()
    for _ in range(100):
        update = answer(task, delta)
        del task
        receipt = server.receive(update)
        assert receipt.next_task is not None
        task = receipt.next_task
        del receipt
        addresses.add(task.parameters.ctypes.data)
    assert len(addresses) == 2


def test_a_client_that_left_holds_nothing_and_can_send_nothing() -> None:
    server = Server(vector(0), rules.asyncfeded())
    tasks = [server.join(name) for name in ("a", "b")]
    server.receive(answer(tasks[1], [1]))
    assert server.stored_versions == 2
    server.leave("a")
    assert server.stored_versions == 1
    assert server.clients == ("b",)
    assert server.receive(answer(tasks[0], [1])).reason == Refusal.UNKNOWN_CLIENT


def test_joining_twice_and_leaving_without_joining_are_errors() -> None:
    server = Server(vector(0), rules.asyncfeded())
    server.join("a")
    with pytest.raises(ClientStateError, match="'a' takes part already"):
        server.join("a")
    with pytest.raises(ClientStateError, match="'b' does not take part"):
        server.leave("b")
    with pytest.raises(ClientStateError, match="non-empty string; given 7"):
        server.join(7)  # type: ignore[arg-type]


def test_an_initial_vector_of_the_wrong_kind_is_refused() -> None:
    rule = rules.asyncfeded()
    with pytest.raises(SettingError, match="1-D float32 array; given float64"):
        Server(np.zeros(3), rule)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="at least one element"):
        Server(vector(), rule)
    with pytest.raises(SettingError, match="must be finite"):
        Server(vector(np.nan), rule)
    with pytest.raises(SettingError, match="trained must be from 1 to 2; given 3"):
        Server(vector(0, 0), rule, trained=3)


# Synchronous rounds.


def test_a_round_ends_when_the_last_client_has_reported() -> None:
    server = Server(vector(0), rules.fedavg())
    a, b = server.join("a"), server.join("b")
    first = server.receive(answer(a, [1]))
    assert (first.accepted, first.next_task, first.version) == (True, None, 1)
    last = server.receive(answer(b, [3]))
    assert server.parameters.tolist() == [2]
    assert last.next_task is not None
    assert (last.next_task.client_id, last.next_task.version) == ("b", 2)
    assert [(t.client_id, t.version) for t in last.other_tasks] == [("a", 2)]


def test_a_client_that_leaves_ends_the_round_for_those_who_waited_only_for_it() -> None:
    server = Server(vector(0), rules.fedavg())
    a, _ = server.join("a"), server.join("b")
    server.receive(answer(a, [4]))
    tasks = server.leave("b")
    assert server.parameters.tolist() == [4]
    assert [(task.client_id, task.version) for task in tasks] == [("a", 2)]


def test_the_last_client_to_leave_leaves_a_server_that_can_be_joined_again() -> None:
    server = Server(vector(0), rules.fedavg())
    server.join("a")
    assert server.leave("a") == ()
    assert server.join("a").version == 1


def test_a_client_that_joins_during_a_round_takes_part_in_it() -> None:
    server = Server(vector(0), rules.fedavg())
    server.receive(answer(server.join("a"), [2]))
    # "a" was alone, so its round is over; now "a" and "b" are in one.
    b = server.join("b")
    assert server.receive(answer(b, [4])).next_task is None


def test_a_refused_update_is_a_client_s_word_for_the_round() -> None:
    server = Server(vector(0), rules.fedavg())
    a, b = server.join("a"), server.join("b")
    refused = server.receive(answer(a, [np.nan]))
    assert (refused.reason, refused.next_task) == (Refusal.NOT_FINITE, None)
    last = server.receive(answer(b, [6]))
    assert server.parameters.tolist() == [6]
    assert {task.client_id for task in last.tasks} == {"a", "b"}


def test_a_round_in_which_nothing_was_taken_leaves_the_model_and_goes_on() -> None:
    server = Server(vector(5), rules.fedavg())
    receipt = server.receive(answer(server.join("a"), [0]))
    assert (receipt.reason, server.version) == (Refusal.ZERO_DELTA, 1)
    assert receipt.next_task is not None


def test_a_mean_that_overflows_is_not_taken() -> None:
    server = Server(vector(3e38), rules.fedavg())
    receipt = server.receive(answer(server.join("a"), [3e38]))
    assert (receipt.accepted, receipt.reason) == (False, Refusal.STEP_NOT_FINITE)
    assert (server.accepted, server.refused[Refusal.STEP_NOT_FINITE]) == (0, 1)
    assert receipt.next_task is not None
    assert receipt.next_task.version == 1


def test_after_a_round_that_overflows_the_same_updates_are_no_duplicates() -> None:
    server = Server(vector(0), rules.fedavg())
    a, b = (
        replace(answer(server.join(name), [value]), round=None)
        for name, value in (("a", 3e38), ("b", 3e38))
    )
    heavy = Server(vector(3e38), rules.fedavg())
    for name in "ab":
        heavy.join(name)
    assert heavy.receive(a).accepted
    assert heavy.receive(b).reason == Refusal.STEP_NOT_FINITE
    assert heavy.receive(a).accepted  # what a client trains again is the same to the bit
    small = replace(b, delta=vector(-3e38))
    assert heavy.receive(small).accepted
    assert (heavy.version, heavy.parameters.tolist()) == (2, vector(3e38).tolist())


def test_a_buffer_that_overflows_is_dropped_and_the_next_one_is_filled() -> None:
    server = Server(vector(3e38), rules.fedbuff(buffer_size=2))
    a, b = server.join("a"), server.join("b")
    assert server.receive(answer(a, [3e38])).accepted
    receipt = server.receive(answer(b, [1]))
    assert receipt.reason == Refusal.STEP_NOT_FINITE
    for name in "cd":
        assert server.receive(answer(server.join(name), [-3e38])).accepted
    assert (server.version, server.parameters.tolist()) == (2, [0])


# Statistics that travel with the model but are not trained.


def test_untrained_elements_stay_out_of_the_norms() -> None:
    server = Server(vector(0, 0, 0), rules.asyncfeded(lam=1, eps=1), trained=2)
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [3, 4, 1000]))
    receipt = server.receive(answer(b, [0, 5, -1000]))
    assert receipt.delta_norm == 5.0
    assert receipt.staleness == 1.0


def test_untrained_elements_move_towards_the_client_s_own_value() -> None:
    server = Server(vector(0, 1), rules.asyncfeded(lam=1, eps=1), trained=1)
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [2, -0.75]))
    assert server.parameters.tolist() == [2, 0.25]
    # γ = 2/2 = 1, so η = 1/2. b's variance is 1 − 0.75 = 0.25 as well: adding η·Δ to the
    # current one would make it negative, moving towards b's leaves it where it is.
    server.receive(answer(b, [2, -0.75]))
    assert server.parameters.tolist() == [3, 0.25]


def test_fedasync_mixes_untrained_elements_like_trained_ones() -> None:
    server = Server(vector(0, 1), rules.fedasync(alpha=0.5), trained=1)
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [2, 1]))
    assert server.parameters.tolist() == [1, 1.5]
    server.receive(answer(b, [2, 3]))
    assert server.parameters.tolist() == [1.5, 2.75]


# Rules that break the contract.


def broken_rule(work: Work, step: Step | None) -> Rule[None]:
    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        return Decision(None, work, step)

    return Rule("broken", Work(1), no_state, on_update)


@pytest.mark.parametrize("epochs", [0, 0.5, -1, float("nan"), float("inf")])
def test_a_rule_cannot_ask_for_less_than_an_epoch(epochs: float) -> None:
    with pytest.raises(RuleError, match=f"at least 1 epoch; it asked for {epochs}"):
        Work(epochs)


def test_a_rule_whose_direction_does_not_fit_is_named() -> None:
    server = Server(vector(0), broken_rule(Work(1), Step(1.0, vector(1, 2))))
    with pytest.raises(RuleError, match=r"direction of shape \(2,\); the model has 1"):
        server.receive(answer(server.join("a"), [1]))


def mixing_rule(mix: float, step: Step | None = None, reads_base: bool = True) -> Rule[None]:
    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        return Decision(None, Work(1), step, mix=mix)

    return Rule("mixing", Work(1), no_state, on_update, reads_base=reads_base)


def test_a_mix_moves_the_model_towards_the_client_s() -> None:
    server = Server(vector(0, 8), mixing_rule(0.25))
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [4, 0]))  # a has (4, 8)
    assert server.parameters.tolist() == [1, 8]
    server.receive(answer(b, [-3, -4]))  # b has (−3, 4): x moves by ¼ · (−4, −4)
    assert server.parameters.tolist() == [0, 7]


def test_a_mix_that_is_not_finite_is_refused_and_changes_nothing() -> None:
    server = Server(vector(3e38, 1), mixing_rule(1.0))
    receipt = server.receive(answer(server.join("a"), [3e38, 1]))
    assert receipt.reason is Refusal.STEP_NOT_FINITE
    assert (server.version, server.parameters.tolist()) == (1, vector(3e38, 1).tolist())


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (mixing_rule(0.5, Step(1.0, vector(1))), "a step and a mix; it may return one of them"),
        (mixing_rule(10**400), "a mix that does not fit a float"),
        (mixing_rule(0.5, reads_base=False), "make the rule with reads_base=True"),
    ],
)
def test_a_mix_that_breaks_the_contract_is_named(rule: Rule[None], problem: str) -> None:
    server = Server(vector(0), rule)
    with pytest.raises(RuleError, match=problem):
        server.receive(answer(server.join("a"), [1]))
    assert (server.version, server.parameters.tolist()) == (1, [0])


def test_a_rule_that_writes_to_what_it_is_given_is_stopped() -> None:
    def on_update(_: None, arrival: Arrival) -> Decision[None]:
        arrival.delta[0] = 0
        return Decision(None, Work(1))

    server = Server(vector(0), Rule("writer", Work(1), no_state, on_update))
    task: TrainTask = server.join("a")
    with pytest.raises(ValueError, match="read-only"):
        server.receive(answer(task, [1]))


def test_a_server_without_a_rule_says_what_one_is() -> None:
    with pytest.raises(SettingError, match=r"such as rules\.asyncfeded\(\); given 'fedavg'"):
        Server(vector(0), "fedavg")  # type: ignore[arg-type]


def test_a_rule_s_error_leaves_the_server_as_it_was() -> None:
    server = Server(vector(0), broken_rule(Work(1), Step(1.0, vector(1, 2))))
    update = answer(server.join("a"), [1])
    for _ in range(2):
        with pytest.raises(RuleError, match="direction of shape"):
            server.receive(update)
        assert (server.version, server.parameters.tolist()) == (1, [0])


def test_the_last_leave_of_a_round_ends_it() -> None:
    server = Server(vector(0), rules.fedavg())
    a, _ = server.join("a"), server.join("b")
    server.receive(answer(a, [4]))
    server.leave("a")
    assert server.leave("b") == ()
    assert (server.version, server.parameters.tolist()) == (2, [4])


def test_a_mean_that_overflows_when_somebody_leaves_is_counted() -> None:
    server = Server(vector(3e38), rules.fedavg())
    a, _ = server.join("a"), server.join("b")
    server.receive(answer(a, [3e38]))
    server.leave("b")
    assert (server.version, server.refused) == (1, {Refusal.STEP_NOT_FINITE: 1})


def test_a_learning_rate_above_one_does_not_extrapolate_statistics() -> None:
    server = Server(vector(0, 1), rules.asyncfeded(lam=3, eps=1), trained=1)
    server.receive(answer(server.join("a"), [2, -0.75]))
    assert server.parameters.tolist() == [6, 0.25]


def test_memory_of_clients_that_left_is_given_up() -> None:
    server = Server(np.zeros(8, np.float32), rules.asyncfeded())
    tasks = [server.join(f"client-{index}") for index in range(50)]
    for task in tasks:
        server.receive(answer(task, [1.0] * 8))
    for task in tasks:
        server.leave(task.client_id)
    assert server.stored_versions == 1
    assert len(server._history._free) <= 2


def test_a_task_that_was_not_sent_is_handed_over_and_its_client_keeps_its_epochs() -> None:
    server = Server(vector(0), rules.asyncfeded(gamma_bar=3, kappa=1))
    receipt = server.receive(answer(server.join("a"), [1]))
    assert receipt.next_task is not None
    other = server.hand_over(receipt.next_task, "b")
    assert (other.client_id, other.epochs, other.round, other.version) == ("b", 10, 0, 2)
    assert (server.clients, server.at_work) == (("b",), ("b",))
    # γ = 0 raised K from 10 to 13; the round that was not sent is given again.
    again = server.join("a")
    assert (again.epochs, again.round, again.version) == (13, 1, 2)
    with pytest.raises(ClientStateError, match="client 'a' does not hold the task of round 0"):
        server.hand_over(again._replace(round=0), "c")
    with pytest.raises(ClientStateError, match="client 'c' does not hold the task of round 1"):
        server.hand_over(again._replace(client_id="c"), "d")
    with pytest.raises(ClientStateError, match="client 'b' takes part already"):
        server.hand_over(again, "b")
    assert server.clients == ("b", "a")


def test_a_task_of_an_earlier_version_is_handed_over_as_one_of_the_newest() -> None:
    server = Server(vector(0), rules.asyncfeded())
    waits, works = server.join("a"), server.join("b")
    server.receive(answer(works, [1]))
    other = server.hand_over(waits, "c")
    assert (other.version, other.parameters.tolist()) == (2, [1.0])
    assert server.stored_versions == 1
    server.leave("b")
    server.leave("c")
    assert server.stored_versions == 1  # the newest, which nobody leases


def test_a_history_serves_one_server() -> None:
    history = VersionHistory()
    Server(vector(1, 2), rules.asyncfeded(), history=history)
    with pytest.raises(SettingError, match="history must be a new one for every server"):
        Server(vector(1), rules.asyncfeded(), history=history)


@pytest.mark.parametrize("rule", [rules.asyncfeded(), rules.fedasync()])
def test_a_guard_sees_the_version_that_a_client_started_from(rule: Rule[object]) -> None:
    seen = []

    def guard(arrival: Arrival) -> None:
        seen.append(arrival.base.tolist())

    server = Server(vector(1, 2), rule, guards=[guard])
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [1, 0]))
    server.receive(answer(b, [0, 1]))
    assert seen == [[1, 2], [1, 2]]


def test_a_version_given_as_numpy_s_number_leaves_a_lag_that_can_be_written() -> None:
    server = Server(vector(1, 2), rules.asyncfeded())
    update = replace(answer(server.join("a"), [1, 0]), version=np.int64(1))  # type: ignore[arg-type]
    assert type(server.receive(update).lag) is int
