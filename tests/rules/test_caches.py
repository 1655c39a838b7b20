"""CA²FL, ACE and ACED, which remember every client's last update, worked by hand."""

import gc

import pytest

from asyncfeded import PersistentMap, Server, rules
from asyncfeded.core.rule import AnyRule
from asyncfeded.rules.client_vectors import no_vectors, with_vector
from builders import answer, vector


def test_two_buffers_of_ca2fl_worked_by_hand() -> None:
    server = Server(vector(0), rules.ca2fl(buffer_size=2), population=4)
    # a sends 4, b sends 8, caches are 0: S = 12, h̄ = 0, x = 12/2 = 6. Then h̄ = (4 + 8)/4 = 3.
    a, b = server.join("a"), server.join("b")
    a2 = server.receive(answer(a, [4])).next_task
    server.receive(answer(b, [8]))
    assert server.parameters.tolist() == [6]
    # a sends 6, c sends 2: S = (6 − 4) + (2 − 0) = 4, x = 6 + 3 + 4/2 = 11. h̄ = (6 + 8 + 2)/4 = 4.
    assert a2 is not None
    server.receive(answer(a2, [6]))
    server.receive(answer(server.join("c"), [2]))
    assert server.parameters.tolist() == [11]
    # d sends 0.5. b leaves, takes its cache along, returns and sends 8: S = 0.5 + 8,
    # x = 11 + 4 + 8.5/2.
    server.receive(answer(server.join("d"), [0.5]))
    server.leave("b")
    server.receive(answer(server.join("b"), [8]))
    assert server.parameters.tolist() == [19.25]


def test_a_client_twice_in_one_buffer_of_ca2fl_is_calibrated_against_its_first_update() -> None:
    server = Server(vector(0), rules.ca2fl(buffer_size=2))
    task = server.receive(answer(server.join("a"), [4])).next_task
    assert task is not None
    # S = (4 − 0) + (6 − 4) = 6, x = 3.
    server.receive(answer(task, [6]))
    assert server.parameters.tolist() == [3]


def test_ca2fl_divides_its_caches_by_all_clients_of_the_federation() -> None:
    server = Server(vector(0), rules.ca2fl(buffer_size=1), population=10)
    task = server.receive(answer(server.join("a"), [10])).next_task
    assert task is not None
    # x = 10; h̄ = 10/10. Then S = 0: x = 10 + 1.
    server.receive(answer(task, [10]))
    assert server.parameters.tolist() == [11]


def test_ace_steps_along_the_mean_of_everybody_s_last_update() -> None:
    server = Server(vector(0), rules.ace(server_lr=1))
    a, b = server.join("a"), server.join("b")
    a2 = server.receive(answer(a, [4])).next_task  # x = 4
    assert server.parameters.tolist() == [4]
    server.receive(answer(b, [2]))  # x = 4 + (4 + 2)/2 = 7
    assert server.parameters.tolist() == [7]
    assert a2 is not None
    server.receive(answer(a2, [6]))  # x = 7 + (6 + 2)/2 = 11
    assert server.parameters.tolist() == [11]
    server.leave("b")
    a3 = server.receive(answer(server.join("c"), [2]))  # x = 11 + (6 + 2)/2 = 15
    assert a3.accepted
    assert server.parameters.tolist() == [15]


def test_aced_forgets_an_update_that_has_become_too_old() -> None:
    server = Server(vector(0), rules.aced(server_lr=1, max_age=2))
    server.receive(answer(server.join("old"), [8]))  # x_2 = 8, trained from x_1
    for delta, expected in [
        (2, 8 + (8 + 2) / 2),  # the old one is one version behind
        (2, 13 + (8 + 2 + 2) / 3),  # two versions behind: just young enough
        (2, 17 + 2),  # three versions behind: only the updates of 1, 2 and 3 are left
    ]:
        server.receive(answer(server.join(f"client-{server.version}"), [delta]))
        assert server.parameters.item() == expected


def test_aced_ages_an_update_from_the_version_that_it_was_trained_from() -> None:
    server = Server(vector(0), rules.aced(server_lr=1, max_age=1))
    late = server.join("late")
    for _ in range(2):
        server.receive(answer(server.join(f"client-{server.version}"), [2]))
    before = server.parameters.item()
    # The late update was trained two versions ago and is too old at once; client-2's is not.
    receipt = server.receive(answer(late, [100]))
    assert receipt.accepted
    assert receipt.figures["active"] == 1
    assert server.parameters.item() == before + 2


def test_aced_allows_as_many_versions_as_there_are_clients_by_default() -> None:
    server = Server(vector(0), rules.aced(server_lr=1))
    a, b = server.join("a"), server.join("b")
    receipts = [server.receive(answer(a, [1]))]
    for _ in range(3):
        receipts.append(server.receive(answer(b, [1])))
        assert receipts[-1].next_task is not None
        b = receipts[-1].next_task
    # Two clients. When b reports for the third time, a's update is three versions old.
    assert [receipt.figures["active"] for receipt in receipts] == [1, 2, 2, 1]


@pytest.mark.parametrize(
    "rule", [rules.ace(server_lr=1), rules.aced(server_lr=1), rules.ca2fl(buffer_size=1)]
)
def test_a_refused_step_leaves_no_update_in_the_caches(rule: AnyRule) -> None:
    server = Server(vector(3e38), rule)
    assert not server.receive(answer(server.join("a"), [3e38])).accepted
    kept = server._state.now["caches" if rule.name == "ca2fl" else "updates"]
    assert len(kept["vectors"]) == 0
    assert kept["sum"].tolist() == [0]


def test_a_cache_is_changed_without_copying_the_others() -> None:
    server = Server(vector(0), rules.ace(server_lr=1))
    for number in range(1000):
        server.receive(answer(server.join(f"client-{number}"), [1]))
    before = server._state.now["updates"]["vectors"]
    entries = before._own_entries()
    server.receive(answer(server.join("another"), [1]))
    assert server._state.now["updates"]["vectors"]._own_entries() is entries  # the same dict
    assert "another" not in before
    assert len(before) == 1000


@pytest.mark.parametrize(
    "rule", [rules.ace(server_lr=1), rules.aced(server_lr=1), rules.ca2fl(buffer_size=4)]
)
def test_replaced_updates_are_not_kept(rule: AnyRule) -> None:
    gc.collect()
    before = number_of_maps()
    server = Server(vector(0), rule)
    tasks = [server.join(name) for name in "ab"]
    for turn in range(500):
        receipt = server.receive(answer(tasks[turn % 2], [1]))
        assert receipt.next_task is not None
        tasks[turn % 2] = receipt.next_task
    gc.collect()
    assert number_of_maps() - before < 50


def number_of_maps() -> int:
    return sum(type(kept) is PersistentMap for kept in gc.get_objects())


def test_a_huge_update_that_is_too_old_for_aced_leaves_the_others_sum_alone() -> None:
    server = Server(vector(0), rules.aced(server_lr=1, max_age=3))
    late, task = server.join("late"), server.join("a")
    for _ in range(6):
        (task,) = server.receive(answer(task, [2])).tasks
    before = server.parameters.item()
    server.receive(answer(late, [1e30]))
    assert server.parameters.item() == before + 2
    server.receive(answer(task, [2]))
    assert server.parameters.item() == before + 4


def test_the_rounding_error_of_a_huge_update_does_not_outlive_it() -> None:
    # 8 + 1e30 − 1e30 is 0 in float64: after as many changes as there are clients it is 8 again.
    kept = with_vector(no_vectors(1), "a", vector(8))
    for value in (1e30, 1, 1, 1):
        kept = with_vector(kept, "z", vector(value))
    assert kept["sum"].tolist() == [9]
