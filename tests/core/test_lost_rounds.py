"""The server, told that an update will not come."""

from dataclasses import replace

import pytest

from asyncfeded import Server, rules
from asyncfeded.core.errors import ClientStateError
from asyncfeded.core.messages import Refusal
from builders import answer, vector


def test_the_client_goes_on_from_the_newest_version_with_its_k() -> None:
    server = Server(vector(0), rules.asyncfeded(lam=1, eps=1, gamma_bar=5.0, kappa=1.0))
    slow, fast = server.join("slow"), server.join("fast")
    faster = server.receive(answer(fast, [1.0])).next_task
    assert faster is not None
    assert faster.epochs == 15
    (task,) = server.lose_round("slow", slow.round, "suspended")
    assert (task.client_id, task.version, task.round, task.epochs) == ("slow", 2, 1, 10)
    assert server.stored_versions == 1
    assert server.lost == {"suspended": 1}


def test_an_update_that_comes_after_all_is_a_duplicate() -> None:
    server = Server(vector(0), rules.asyncfeded())
    task = server.join("a")
    server.lose_round("a", task.round, "suspended")
    assert server.receive(answer(task, [1.0])).reason is Refusal.DUPLICATE


@pytest.mark.parametrize(("client", "number"), [("nobody", 0), ("a", 1), ("a", -1)])
def test_only_a_round_that_is_under_way_can_be_lost(client: str, number: int) -> None:
    server = Server(vector(0), rules.asyncfeded())
    server.join("a")
    with pytest.raises(ClientStateError, match=r"does not hold .* which cannot be lost"):
        server.lose_round(client, number, "suspended")
    assert not server.lost


def test_who_waits_for_the_end_of_a_round_cannot_lose_it() -> None:
    server = Server(vector(0), rules.fedavg())
    first, second = server.join("a"), server.join("b")
    server.receive(answer(first, [1.0]))
    with pytest.raises(ClientStateError, match="does not hold the task of round 0"):
        server.lose_round("a", 0, "suspended")
    tasks = server.lose_round("b", second.round, "suspended")
    assert [(task.client_id, task.version) for task in tasks] == [("a", 2), ("b", 2)]
    assert server.parameters.tolist() == [1.0]


def test_a_round_of_survivors_whose_step_is_not_finite_is_counted() -> None:
    server = Server(vector(3e38), rules.fedavg())
    first, second = server.join("a"), server.join("b")
    server.receive(answer(first, [3e38]))
    server.lose_round("b", second.round, "suspended")
    assert server.refused == {Refusal.STEP_NOT_FINITE: 1}
    assert server.version == 1


def test_who_leaves_in_the_middle_of_a_round_may_lose_it_by_name_and_comes_back() -> None:
    server = Server(vector(0), rules.asyncfeded(lam=1, eps=1, gamma_bar=5.0, kappa=1.0))
    task = server.receive(answer(server.join("a"), [1.0])).next_task
    assert task is not None
    assert server.takes_part("a")
    assert server.leave("a", lost="away") == ()
    assert not server.takes_part("a")
    assert server.lost == {"away": 1}
    back = server.join("a")
    assert (back.round, back.epochs) == (task.round + 1, task.epochs)
    # What was taken stays known: the first update again, without its round, is a duplicate.
    again = replace(answer(task, [1.0]), version=1, round=None)
    assert server.receive(again).reason is Refusal.DUPLICATE


def test_who_waits_for_the_end_of_a_round_loses_nothing_when_it_leaves() -> None:
    server = Server(vector(0), rules.fedavg())
    first, _ = server.join("a"), server.join("b")
    server.receive(answer(first, [1.0]))
    assert server.leave("a", lost="away") == ()
    assert not server.lost
    assert server.leave("b", lost="away") == ()  # the round ends with what a has reported
    assert server.lost == {"away": 1}
    assert server.parameters.tolist() == [1.0]
