"""FedAvg and FedProx against rounds worked by hand."""

import numpy as np
import pytest

from asyncfeded import Refusal, Server, rules
from asyncfeded.core.errors import SettingError
from builders import answer, vector


def test_two_rounds_of_fedavg_worked_by_hand() -> None:
    server = Server(vector(1, 1), rules.fedavg())
    a, b = server.join("a"), server.join("b")
    # Round 1: a has 30 examples and moves by (4, 0), b has 10 and moves by (0, 8).
    # x_2 = (1, 1) + (30 · (4, 0) + 10 · (0, 8)) / 40 = (1 + 3, 1 + 2).
    server.receive(answer(a, [4, 0], num_examples=30))
    receipt = server.receive(answer(b, [0, 8], num_examples=10))
    assert server.parameters.tolist() == [4, 3]
    # Round 2, reported in the other order: x_3 = (4, 3) + (30 · (0, 4) + 10 · (4, 0)) / 40.
    b, a = receipt.tasks
    assert (b.client_id, a.client_id) == ("b", "a")
    server.receive(answer(b, [4, 0], num_examples=10))
    server.receive(answer(a, [0, 4], num_examples=30))
    assert server.parameters.tolist() == [5, 6]
    assert server.version == 3


def test_every_client_weighs_by_its_examples_and_nothing_is_divided_by_their_number() -> None:
    server = Server(vector(0), rules.fedavg())
    tasks = [server.join(name) for name in "abc"]
    for task in tasks:
        server.receive(answer(task, [6], num_examples=5))
    assert server.parameters.tolist() == [6]


def test_huge_numbers_of_examples_leave_the_server_alive() -> None:
    server = Server(vector(0), rules.fedavg())
    a, b = server.join("a"), server.join("b")
    assert server.receive(answer(a, [6], num_examples=10**308)).reason == Refusal.OUT_OF_RANGE
    last = server.receive(answer(b, [4], num_examples=2**53))
    assert last.accepted
    assert server.parameters.tolist() == [4]
    for task in last.tasks:
        assert server.receive(answer(task, [1], num_examples=2**53)).accepted
    assert server.parameters.tolist() == [5]


def test_numpy_s_small_integers_do_not_overflow_in_the_weights() -> None:
    server = Server(vector(0), rules.fedavg())
    a, b = server.join("a"), server.join("b")
    for task in (a, b):
        update = answer(task, [1], num_examples=np.int8(100))  # type: ignore[arg-type]
        assert server.receive(update).accepted
    assert server.parameters.tolist() == [1]


def test_fedprox_sends_its_proximal_term_to_the_clients_and_averages_like_fedavg() -> None:
    server = Server(vector(0), rules.fedprox(mu=0.1))
    a, b = server.join("a"), server.join("b")
    assert (a.proximal_mu, b.proximal_mu) == (0.1, 0.1)
    server.receive(answer(a, [4], num_examples=3))
    receipt = server.receive(answer(b, [8], num_examples=1))
    assert server.parameters.tolist() == [5]
    assert [task.proximal_mu for task in receipt.tasks] == [0.1, 0.1]


def test_fedavg_sends_no_proximal_term() -> None:
    assert Server(vector(0), rules.fedavg()).join("a").proximal_mu == 0


def test_settings_out_of_range_are_named_with_their_values() -> None:
    with pytest.raises(SettingError, match=r"^mu must be at least 0; given -1$"):
        rules.fedprox(mu=-1)
    with pytest.raises(SettingError, match=r"^initial_epochs must be at least 1; given 0$"):
        rules.fedavg(initial_epochs=0)
