"""FADAS against numbers worked by hand."""

import pytest

from asyncfeded import Server, rules
from builders import answer, vector


def test_fadas_divides_by_the_largest_second_moment_so_far() -> None:
    server = Server(vector(0), rules.fadas(1, server_lr=1, beta1=0.5, beta2=0.5, epsilon=1))
    # Δ̄ = 4: m = 2, v = 8, v̂ = 8, x = 2 / (√8 + 1).
    (task,) = server.receive(answer(server.join("a"), [4])).tasks
    first = 2 / (8**0.5 + 1)
    assert server.parameters.item() == pytest.approx(first)
    # Δ̄ = 1: m = 0.5 · 2 + 0.5 = 1.5, v = 0.5 · 8 + 0.5 = 4.5, but v̂ stays 8.
    server.receive(answer(task, [1]))
    assert server.parameters.item() == pytest.approx(first + 1.5 / (8**0.5 + 1))


def test_fadas_steps_once_for_every_m_updates_along_their_mean() -> None:
    server = Server(vector(0), rules.fadas(2, server_lr=1, beta1=0, beta2=0, epsilon=1))
    a, b = server.join("a"), server.join("b")
    assert server.receive(answer(a, [1])).version == 1
    # Δ̄ = (1 + 5)/2 = 3, with both β = 0: m = 3, √v̂ = 3, x = 3 / 4.
    server.receive(answer(b, [5]))
    assert (server.version, server.parameters.tolist()) == (2, [0.75])


def test_the_delay_adaptive_step_is_divided_by_the_largest_lag_in_the_buffer() -> None:
    rule = rules.fadas_adaptive(2, server_lr=1, beta1=0, beta2=0, epsilon=1, max_lag=1)
    server = Server(vector(0), rule)
    late = server.join("late")
    for version in (1, 2, 3):
        for name in "ab":
            server.receive(answer(server.join(f"{name}{version}"), [1]))
    assert server.version == 4
    before = server.parameters.item()
    # The late client has a lag of 3, the other of 0: η = 1/3. m = √v̂ = 1, so the step is 1/3 · 1/2.
    server.receive(answer(late, [1]))
    receipt = server.receive(answer(server.join("fresh"), [1]))
    assert receipt.learning_rate == pytest.approx(1 / 3)
    assert server.parameters.item() == pytest.approx(before + 1 / 6)
    # The next buffer knows nothing of that lag.
    for name in "cd":
        receipt = server.receive(answer(server.join(name), [1]))
    assert receipt.learning_rate == 1


def test_a_lag_up_to_the_threshold_does_not_shrink_the_step() -> None:
    rule = rules.fadas_adaptive(1, server_lr=1, max_lag=2)
    server = Server(vector(0), rule)
    tasks = [server.join(name) for name in "abcd"]
    rates = [server.receive(answer(task, [1])).learning_rate for task in tasks]
    assert rates == [1, 1, 1, pytest.approx(1 / 3)]
