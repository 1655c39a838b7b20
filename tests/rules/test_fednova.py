"""FedNova against numbers worked by hand."""

from dataclasses import replace

import pytest

from asyncfeded import Server, rules
from builders import answer, vector


def test_clients_that_train_longer_do_not_count_for_more() -> None:
    server = Server(vector(0), rules.fednova(client_momentum=0))
    a, b = server.join("a"), server.join("b")
    # a: 3 examples, 2 steps, Δ = 4. b: 1 example, 10 steps, Δ = 10. Per step: 2 and 1.
    # Σ p·a = (3·2 + 1·10)/4 = 4, Σ p·Δ/a = (3·2 + 1·1)/4 = 1.75, x = 7.
    server.receive(replace(answer(a, [4], num_examples=3), steps=2))
    server.receive(replace(answer(b, [10], num_examples=1), steps=10))
    assert server.parameters.tolist() == [7]


def test_with_equal_steps_it_is_fedavg() -> None:
    for momentum in (0, 0.5):
        server = Server(vector(1), rules.fednova(client_momentum=momentum))
        a, b = server.join("a"), server.join("b")
        server.receive(replace(answer(a, [4], num_examples=3), steps=7))
        server.receive(replace(answer(b, [8], num_examples=1), steps=7))
        assert server.parameters.item() == pytest.approx(1 + 5)


def test_momentum_changes_how_much_a_step_counts() -> None:
    # ρ = 1/2. One step: a = (1 − ½·½/½)/½ = 1. Two steps: a = (2 − ½·¾/½)/½ = 2.5, as the first
    # gradient counts 1 + ½ and the second 1.
    server = Server(vector(0), rules.fednova(client_momentum=0.5))
    a, b = server.join("a"), server.join("b")
    server.receive(replace(answer(a, [1]), steps=1))
    server.receive(replace(answer(b, [5]), steps=2))
    # Σ p·a = 1.75, Σ p·Δ/a = (1 + 2)/2 = 1.5.
    assert server.parameters.item() == pytest.approx(1.75 * 1.5)


def test_a_client_that_does_not_say_its_steps_counts_by_its_epochs() -> None:
    server = Server(vector(0), rules.fednova(client_momentum=0, initial_epochs=4))
    receipt = server.receive(answer(server.join("a"), [8]))
    assert receipt.figures["local_steps"] == 4
    assert server.parameters.tolist() == [8]
