"""Server optimizers on FedAvg's and FedBuff's mean, against numbers worked by hand."""

import numpy as np
import pytest

from asyncfeded import Server, rules
from asyncfeded.core.rule import AnyRule
from asyncfeded.rules import server_optimizer
from asyncfeded.rules.server_optimizer import ServerOptimizer
from builders import answer, vector


def two_rounds(rule: AnyRule, first: float, second: float) -> list[float]:
    """The model after each of two rounds of one client that starts from 0."""
    server = Server(vector(0), rule)
    (task,) = server.receive(answer(server.join("a"), [first])).tasks
    models = [server.parameters.item()]
    server.receive(answer(task, [second]))
    return [*models, server.parameters.item()]


def test_fedavgm_adds_up_its_momentum() -> None:
    # m = 2, x = 2 · 0.5 = 1; then m = 0.9 · 2 + 1 = 2.8, x = 1 + 1.4.
    assert two_rounds(rules.fedavgm(server_lr=0.5, beta=0.9), 2, 1) == pytest.approx([1, 2.4])


def test_fedadagrad_divides_by_the_root_of_all_squares() -> None:
    # v₀ = 1. v = 1 + 4 = 5, x = 2 / (√5 + 1). v = 5 + 4 = 9, x += 2 / (3 + 1).
    first = 2 / (5**0.5 + 1)
    found = two_rounds(rules.fedadagrad(server_lr=1, beta1=0, adaptivity=1), 2, 2)
    assert found == pytest.approx([first, first + 0.5])


def test_fedadam_starts_from_tau_squared_and_corrects_no_moment() -> None:
    # m = 0.1 · 2 = 0.2, v = 0.5 · 1 + 0.5 · 4 = 2.5, x = 0.2 / (√2.5 + 1).
    # m = 0.9 · 0.2 + 0.1 · 1 = 0.28, v = 0.5 · 2.5 + 0.5 · 1 = 1.75, x += 0.28 / (√1.75 + 1).
    first = 0.2 / (2.5**0.5 + 1)
    rule = rules.fedadam(server_lr=1, beta1=0.9, beta2=0.5, adaptivity=1)
    assert two_rounds(rule, 2, 1) == pytest.approx([first, first + 0.28 / (1.75**0.5 + 1)])


def test_fedyogi_moves_its_second_moment_by_a_sign() -> None:
    # v = 1 − 0.5 · 4 · sign(1 − 4) = 3, m = 0.2.
    # v = 3 − 0.5 · 1 · sign(3 − 1) = 2.5, m = 0.28.
    first = 0.2 / (3**0.5 + 1)
    rule = rules.fedyogi(server_lr=1, beta1=0.9, beta2=0.5, adaptivity=1)
    assert two_rounds(rule, 2, 1) == pytest.approx([first, first + 0.28 / (2.5**0.5 + 1)])


def test_an_optimizer_after_fedavg_gets_the_mean_weighted_by_examples() -> None:
    server = Server(vector(0), rules.fedavgm(server_lr=1, beta=0.5))
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [4], num_examples=3))
    server.receive(answer(b, [8], num_examples=1))
    assert server.parameters.tolist() == [5]


@pytest.mark.parametrize(
    ("rule", "optimizer"),
    [
        (
            rules.fedbuff_momentum(buffer_size=2, server_lr=0.5, beta=0.9),
            server_optimizer.momentum(0.5, 0.9),
        ),
        (
            rules.fedbuff_adagrad(buffer_size=2, server_lr=0.5, beta1=0.1, adaptivity=0.1),
            server_optimizer.adagrad(0.5, 0.1, 0.1),
        ),
        (
            rules.fedbuff_adam(buffer_size=2, server_lr=0.5, beta1=0.9, beta2=0.8, adaptivity=0.1),
            server_optimizer.adam(0.5, 0.9, 0.8, 0.1),
        ),
        (
            rules.fedbuff_yogi(buffer_size=2, server_lr=0.5, beta1=0.9, beta2=0.8, adaptivity=0.1),
            server_optimizer.yogi(0.5, 0.9, 0.8, 0.1),
        ),
    ],
)
def test_an_optimizer_after_fedbuff_gets_the_buffer_s_mean(
    rule: AnyRule, optimizer: ServerOptimizer
) -> None:
    # Two buffers of fresh updates, with the means (1 + 3)/2 = 2 and (0.5 + 1.5)/2 = 1.
    server = Server(vector(0), rule)
    tasks = [server.join(name) for name in "ab"]
    for deltas in ((1, 3), (0.5, 1.5)):
        for task, delta in zip(tasks, deltas, strict=True):
            server.receive(answer(task, [delta]))
        tasks = [server.join(f"{name}{server.version}") for name in "ab"]
    state, first = optimizer.step(optimizer.init(vector(0)), vector(2))
    _, second = optimizer.step(state, vector(1))
    expected = first.scale * first.direction.item() + second.scale * second.direction.item()
    assert server.version == 3
    assert server.parameters.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rule", [rules.fedadam(beta2=0.5), rules.fedbuff_adam(1, beta2=0.5)])
def test_the_square_of_a_huge_update_does_not_stop_an_element_for_ever(rule: AnyRule) -> None:
    # 1e21² is more than a float32 holds: an infinite v would make every later step 0.
    server = Server(vector(0), rule)
    (task,) = server.receive(answer(server.join("a"), [1e21])).tasks
    for _ in range(200):
        (task,) = server.receive(answer(task, [1])).tasks
    before = server.parameters.item()
    server.receive(answer(task, [1]))
    assert server.parameters.item() > before


@pytest.mark.parametrize("name", ["fedadagrad", "fedyogi", "fedbuff-yogi", "fadas"])
def test_second_moments_stay_finite_whatever_arrives(name: str) -> None:
    server = Server(vector(0), rules.REGISTRY[name]())
    task = server.join("a")
    for _ in range(20):
        (task,) = server.receive(answer(task, [3e38])).tasks
    state = server._state.now
    assert np.isfinite(state.get("optimizer", state)["v"]).all()


def test_the_learning_rate_in_a_receipt_is_the_optimizer_s() -> None:
    server = Server(vector(0), rules.fedbuff_adam(buffer_size=2, server_lr=0.001))
    assert server.receive(answer(server.join("a"), [1])).learning_rate == 0.0005


def test_the_optimizer_s_moments_survive_a_buffer_that_is_not_full() -> None:
    server = Server(vector(0), rules.fedbuff_momentum(buffer_size=2, server_lr=1, beta=0.5))
    a, b, c, d = (server.join(name) for name in "abcd")
    server.receive(answer(a, [4]))
    server.receive(answer(b, [4]))
    assert server.parameters.tolist() == [4]
    # c and d are one version late: s = 1/√2 each, so Δ̄ = 4/√2 and m = 0.5 · 4 + 4/√2.
    server.receive(answer(c, [4]))
    assert server.version == 2
    server.receive(answer(d, [4]))
    assert server.parameters.item() == pytest.approx(4 + 2 + 4 / 2**0.5)
