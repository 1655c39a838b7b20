"""Local training: against torch's own optimizer, and the bits it must repeat."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import TrainTask, randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples, as_examples
from asyncfeded.learning.local_training import LocalTraining, OptimizerFactory
from asyncfeded.learning.models import mlp
from asyncfeded.learning.rounds import batch_sizes
from asyncfeded.learning.trainer import TorchTrainer


def examples(count: int = 50, seed: int = 0) -> TensorExamples:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=draw)
    return TensorExamples(x, (x.sum(dim=1) > 0).long())


def module() -> nn.Sequential:
    torch.manual_seed(0)
    return mlp(6, (8, 5), 2)


def trainer(
    training: LocalTraining | None = None,
    make: Callable[[], nn.Module] = module,
    optimizers: Mapping[str, OptimizerFactory] | None = None,
    seed: int = 0,
) -> TorchTrainer:
    data = {"a": examples(), "b": examples(70, seed=1)}
    training = LocalTraining() if training is None else training
    return TorchTrainer(make(), data, replace(training, optimizers=optimizers), seed=seed)


def task(
    parameters: Any, client_id: str = "a", epochs: int = 3, number: int = 0, mu: float = 0.0
) -> TrainTask:
    return TrainTask(client_id, 1, parameters, epochs, number, mu)


def plain_torch(
    data: TensorExamples, training: LocalTraining, epochs: int, number: int, mu: float = 0.0
) -> torch.Tensor:
    """The same round with torch's own SGD and nothing flat; returns all parameters."""
    net = module()
    start = [p.detach().clone() for p in net.parameters()]
    order = randomness.generator(0, "batches", "a", number)
    rate = training.learning_rate * training.decay**number
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=training.momentum)
    for _ in range(epochs):
        indices = torch.from_numpy(order.permutation(len(data)))
        begin = 0
        for size in batch_sizes(len(data), training.batch_size):
            batch = indices[begin : begin + size]
            begin += size
            loss = nn.functional.cross_entropy(net(data.x[batch]), data.y[batch])
            for parameter, origin in zip(net.parameters(), start, strict=True):
                loss = loss + mu / 2 * ((parameter - origin) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


@pytest.mark.parametrize(
    ("momentum", "number", "mu"), [(0.5, 0, 0.0), (0.5, 4, 0.0), (0.5, 0, 0.5), (0.0, 0, 0.5)]
)
def test_a_round_is_momentum_sgd_as_torch_does_it(momentum: float, number: int, mu: float) -> None:
    training = LocalTraining(learning_rate=0.1, momentum=momentum, decay=0.9, batch_size=8)
    train = trainer(training)
    update = train(task(train.initial, number=number, mu=mu))
    expected = plain_torch(examples(), training, epochs=3, number=number, mu=mu)
    np.testing.assert_allclose(train.initial + update.delta, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(update.delta).max() > 0.01
    assert (update.num_examples, update.epochs, update.round) == (50, 3, number)


def test_a_round_has_the_same_bits_whatever_was_trained_before() -> None:
    train = trainer()
    alone = train(task(train.initial)).delta
    train(task(train.initial, "b", epochs=5))
    assert train(task(train.initial)).delta.tobytes() == alone.tobytes()
    assert trainer()(task(train.initial)).delta.tobytes() == alone.tobytes()


def test_seed_client_and_round_decide_the_batches() -> None:
    train = trainer(LocalTraining(decay=1.0, batch_size=8))
    first = train(task(train.initial)).delta
    other = trainer(LocalTraining(decay=1.0, batch_size=8), seed=1)
    assert not np.array_equal(train(task(train.initial, number=1)).delta, first)
    assert not np.array_equal(other(task(train.initial)).delta, first)


def test_dropout_is_keyed_too_and_leaves_torch_s_generator_alone() -> None:
    def dropping() -> nn.Module:
        return nn.Sequential(module(), nn.Dropout(0.5))

    train = trainer(make=dropping)
    torch.manual_seed(99)
    expected = torch.rand(3)
    torch.manual_seed(99)
    first = train(task(train.initial)).delta
    assert torch.equal(torch.rand(3), expected)
    assert train(task(train.initial)).delta.tobytes() == first.tobytes()


def test_training_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    train = trainer()
    train(task(train.initial))
    assert torch.get_num_threads() == before


def test_the_task_s_parameters_are_not_written_to() -> None:
    train = trainer()
    parameters = train.initial.copy()
    parameters.flags.writeable = False
    train(task(parameters))
    assert np.array_equal(parameters, train.initial)


def test_a_proximal_term_holds_the_model_near_its_start() -> None:
    train = trainer(LocalTraining(learning_rate=0.1))
    free = np.linalg.norm(train(task(train.initial, epochs=20)).delta)
    held = np.linalg.norm(train(task(train.initial, epochs=20, mu=1.0)).delta)
    assert held < 0.8 * free


def test_steps_count_mini_batches_and_go_on_over_the_end_of_the_data() -> None:
    # 50 examples in batches of 20: 20, 20, 10. Five steps: one pass and two batches more.
    training = LocalTraining(batch_size=20, unit="steps")
    train = trainer(training)
    sizes = [len(y) for _, _, y in train._batches(task(train.initial, epochs=5), examples())]
    assert sizes == [20, 20, 10, 20, 20]


@pytest.mark.parametrize(
    ("decay_per", "rates"),
    [
        ("round", [0.25] * 4),
        ("epoch", [1.0, 1.0, 0.5, 0.5]),
        ("step", [1.0, 0.5, 0.25, 0.125]),
    ],
)
def test_the_learning_rate_decays_per_round_per_epoch_or_per_step(
    decay_per: Any, rates: list[float]
) -> None:
    training = LocalTraining(1.0, decay=0.5, decay_per=decay_per, batch_size=25)
    train = trainer(training)
    batches = train._batches(task(train.initial, epochs=2, number=2), examples())
    assert [rate for rate, _, _ in batches] == rates


@pytest.mark.parametrize(
    ("count", "sizes"), [(64, [32, 32]), (70, [32, 32, 6]), (65, [32, 33]), (1, [1]), (20, [20])]
)
def test_a_single_last_example_joins_the_batch_before(count: int, sizes: list[int]) -> None:
    assert batch_sizes(count, 32) == sizes


def test_a_client_may_bring_another_optimizer() -> None:
    def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=0.01)

    train = trainer(optimizers={"a": adam})
    plain = trainer()
    assert not np.array_equal(train(task(train.initial)).delta, plain(task(plain.initial)).delta)
    assert np.array_equal(
        train(task(train.initial, "b")).delta, plain(task(plain.initial, "b")).delta
    )


def test_torch_s_sgd_as_a_client_s_optimizer_gives_what_the_built_in_one_gives() -> None:
    training = LocalTraining(learning_rate=0.1, momentum=0.5, decay=1.0)

    def sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.5)

    built_in, brought = trainer(training), trainer(training, optimizers={"a": sgd})
    for mu in (0.0, 0.3):
        left = built_in(task(built_in.initial, mu=mu)).delta
        right = brought(task(brought.initial, mu=mu)).delta
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-7)


def test_batch_norm_statistics_are_part_of_the_update() -> None:
    def normed() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))

    train = trainer(LocalTraining(batch_size=10), make=normed)
    delta = train(task(train.initial, epochs=2)).delta
    assert delta[-4:].tolist() == [10, 0, 0, 0]  # the count of batches: 2 passes of 5
    assert np.abs(delta[train.schema.trained : -4]).min() > 0


def test_a_parameter_that_the_loss_does_not_reach_stays_as_it_is() -> None:
    class WithSpare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(6, 2)
            self.spare = nn.Linear(6, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.used(x)
            return out

    train = trainer(LocalTraining(allow_unused=True), make=WithSpare)
    delta = train(task(train.initial)).delta
    assert np.abs(delta[:14]).max() > 0
    assert np.abs(delta[14:]).max() == 0


def test_data_sets_come_as_torch_datasets_pairs_or_lists() -> None:
    data = examples(5)
    forms = [
        torch.utils.data.TensorDataset(data.x, data.y),
        (data.x.numpy(), data.y.numpy()),
        [(x, int(y)) for x, y in zip(data.x, data.y, strict=True)],
    ]
    for form in forms:
        read = as_examples(form)
        assert torch.equal(read.x, data.x)
        assert torch.equal(read.y, data.y)


def test_bad_data_sets_and_settings_are_refused() -> None:
    with pytest.raises(SettingError, match="as many targets as inputs; given 2 targets and 3"):
        as_examples((np.zeros((3, 1)), np.zeros(2)))
    with pytest.raises(SettingError, match="at least one example"):
        as_examples([])
    with pytest.raises(SettingError, match=r"must be a torch Dataset .* given int"):
        as_examples(7)
    train = trainer()
    with pytest.raises(SettingError, match="client 'z' has no data"):
        train(task(train.initial, "z"))
    for setting, value in (
        ("learning_rate", 0.0),
        ("momentum", 1.0),
        ("decay", 0.0),
        ("decay_per", "week"),
        ("batch_size", 0),
        ("unit", "hours"),
    ):
        with pytest.raises(SettingError, match=f"^{setting} must be .*; given {value!r}$"):
            LocalTraining(**{setting: value})  # type: ignore[arg-type]


class SharedGradient(nn.Module):
    """Two parameters that only enter as their sum."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.zeros(6, 2))
        self.right = nn.Parameter(torch.ones(6, 2) / 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.left + self.right)


def test_a_proximal_term_is_right_where_autograd_shares_a_gradient() -> None:
    # With one step there is no pull yet; after it both are pulled back once, not twice. Both
    # move alike, for their gradients and their distances from the start are the same.
    training = LocalTraining(learning_rate=0.1, momentum=0.0, decay=1.0, batch_size=50)
    train = trainer(training, make=SharedGradient)
    one, two = (train(task(train.initial, epochs=count, mu=1.0)).delta for count in (1, 2))
    free = train(task(train.initial, epochs=2)).delta
    np.testing.assert_allclose(two[:12], two[12:], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(two - free, -0.1 * one, rtol=1e-3, atol=1e-6)


def test_a_loss_that_is_linear_in_a_parameter_leaves_the_trainer_as_it_was() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, 2)
            self.shift = nn.Parameter(torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.linear(x)
            return out

    module = Shifted()

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output, target) + module.shift

    train = TorchTrainer(module, {"a": examples()}, loss=loss)
    first = train(task(train.initial, mu=1.0)).delta
    assert train(task(train.initial, mu=1.0)).delta.tobytes() == first.tobytes()


def test_a_buffer_that_the_module_replaces_travels_and_does_not_leak() -> None:
    class Averaging(nn.Module):
        mean: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, 2)
            self.register_buffer("mean", torch.zeros(6))
            self.register_buffer("mask", torch.full((2,), -torch.inf), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(dim=0)
            out: torch.Tensor = self.linear(x - self.mean)
            return out

    train = trainer(make=Averaging)
    assert train.schema.size == 14 + 6
    first = train(task(train.initial)).delta
    assert np.abs(first[14:]).max() > 0
    train(task(train.initial, "b"))
    assert train(task(train.initial)).delta.tobytes() == first.tobytes()


def test_an_optimizer_for_a_client_without_data_is_refused() -> None:
    with pytest.raises(SettingError, match="optimizers names client 'nobody'"):
        trainer(optimizers={"nobody": torch.optim.Adam})


def test_float64_data_are_read_as_float32() -> None:
    read = as_examples((np.zeros((3, 2)), np.zeros(3, np.int64)))
    assert (read.x.dtype, read.y.dtype) == (torch.float32, torch.int64)
