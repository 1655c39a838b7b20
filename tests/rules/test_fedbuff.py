"""FedBuff against updates worked by hand."""

import numpy as np
import pytest

from asyncfeded import Server, rules
from asyncfeded.core.errors import SettingError
from builders import answer, vector


def test_two_buffers_worked_by_hand() -> None:
    # M = 2, η = 1, s(τ) = 1/√(1 + τ).
    server = Server(vector(0), rules.fedbuff(buffer_size=2))
    a, b, slow = (server.join(name) for name in ("a", "b", "slow"))
    # a: 2, b: 4, both fresh: x_2 = (2 + 4)/2 = 3. a goes on from x_1 at once.
    first = server.receive(answer(a, [2]))
    assert (first.accepted, first.version) == (True, 1)
    assert first.next_task is not None
    assert first.next_task.version == 1
    second = server.receive(answer(b, [4]))
    assert (second.version, server.parameters.tolist()) == (2, [3])
    # slow: 4 from x_1, lag 1: weight 1/√2. b: 1 from x_2, fresh: weight 1.
    # x_3 = 3 + (4/√2 + 1)/2 = 3.5 + √2.
    server.receive(answer(slow, [4]))
    assert server.version == 2
    assert second.next_task is not None
    server.receive(answer(second.next_task, [1]))
    np.testing.assert_allclose(server.parameters, [3.5 + 2**0.5], rtol=1e-6)


def test_a_lag_of_three_halves_the_weight() -> None:
    server = Server(vector(0), rules.fedbuff(buffer_size=1, server_lr=2))
    slow, fast = server.join("slow"), server.join("fast")
    for _ in range(3):
        receipt = server.receive(answer(fast, [1]))
        assert receipt.next_task is not None
        fast = receipt.next_task
    assert server.parameters.tolist() == [6]
    # (1 + 3)^−1/2 = 1/2: x = 6 + 2 · 1/2 · 1.
    assert server.receive(answer(slow, [1])).learning_rate == 1.0
    assert server.parameters.tolist() == [7]


@pytest.mark.parametrize("clients", [1, 2, 5])
def test_fedbuff_of_the_whole_cohort_without_staleness_weight_is_fedavg(clients: int) -> None:
    draw = np.random.default_rng(clients)
    names = [f"client-{index}" for index in range(clients)]
    buffered = Server(vector(0, 0), rules.fedbuff(buffer_size=clients, staleness_exponent=0))
    averaged = Server(vector(0, 0), rules.fedavg())
    for server in (buffered, averaged):
        for name in names:
            server.join(name)
    for _ in range(4):
        deltas = draw.normal(size=(clients, 2)).tolist()
        for server in (buffered, averaged):
            version = server.version
            for name, delta in zip(names, deltas, strict=True):
                client = server._clients.find(name)
                assert client is not None
                assert client.task is not None
                assert server.receive(answer(client.task, delta, num_examples=7)).accepted
            assert server.version == version + 1
    np.testing.assert_allclose(buffered.parameters, averaged.parameters, rtol=1e-6)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("buffer_size", 0), ("server_lr", 0.0), ("staleness_exponent", -1.0), ("initial_epochs", 0)],
)
def test_a_setting_out_of_range_is_named_with_its_value(setting: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"^{setting} must be .*; given {value!r}$"):
        rules.fedbuff(**{setting: value})  # type: ignore[arg-type]
