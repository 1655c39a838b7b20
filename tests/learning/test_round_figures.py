"""What an update says beside its delta, and which parameters a round must reach."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from asyncfeded import ClientUpdate, TrainTask
from asyncfeded.core.errors import SettingError
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.trainer import Loss, TorchTrainer

ONE_BY_ONE = LocalTraining(learning_rate=0.5, momentum=0.0, batch_size=1, unit="steps")


def of_numbers(values: list[float]) -> TensorExamples:
    """Inputs 1, 1, … and these targets."""
    y = torch.tensor(values, dtype=torch.float32).reshape(-1, 1)
    return TensorExamples(torch.ones_like(y), y)


def zero_line() -> nn.Linear:
    line = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(line.weight)
    return line


@pytest.mark.parametrize("kind", [TorchTrainer, CompiledTrainer])
@pytest.mark.parametrize("epochs", [1, 2])
def test_the_loss_of_a_round_is_the_mean_over_the_examples_visited(
    kind: type[TorchTrainer] | type[CompiledTrainer], epochs: int
) -> None:
    # Targets 1, 1, 1 and x = 0 in batches of 2 + 1; a single example joins those before it, so one
    # batch of 3. Loss (x − 1)², gradient 2·(x − 1), rate 1/4: x = 0, 1/2; losses 1, 1/4.
    training = LocalTraining(learning_rate=0.25, momentum=0.0, decay=1.0, batch_size=2)
    loss: Loss = nn.functional.mse_loss
    train = kind(zero_line(), {"a": of_numbers([1, 1, 1])}, training, loss)
    update = train(TrainTask("a", 1, train.initial, epochs))
    assert update.steps == epochs
    assert update.figures == {"loss": 1.0 if epochs == 1 else 0.625}
    assert type(update.figures["loss"]) is float


@pytest.mark.parametrize("kind", [TorchTrainer, CompiledTrainer])
def test_a_batch_counts_by_its_examples(
    kind: type[TorchTrainer] | type[CompiledTrainer],
) -> None:
    # The model gives 0 and hardly moves: the loss is the mean of the squared targets, whatever
    # the batches: (0 + 0 + 0 + 0 + 9 + 9) / 6 = 3.
    training = LocalTraining(learning_rate=1e-30, momentum=0.0, batch_size=4)
    data = {"a": of_numbers([0, 0, 0, 0, 3, 3])}
    train = kind(zero_line(), data, training, nn.functional.mse_loss)
    update = train(TrainTask("a", 1, train.initial, 3))
    assert update.steps == 6
    assert update.figures["loss"] == pytest.approx(3.0)


def test_both_kernels_give_the_same_cross_entropy() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(50, 6, generator=draw)
    examples = TensorExamples(x, (x.sum(dim=1) > 0).long())
    updates: list[ClientUpdate] = []
    for kind in (TorchTrainer, CompiledTrainer):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
        train = kind(module, {"a": examples}, LocalTraining(batch_size=8))
        updates.append(train(TrainTask("a", 1, train.initial, 3)))
    torch_update, compiled = updates
    assert torch_update.steps == compiled.steps == 21
    assert torch_update.figures["loss"] == pytest.approx(compiled.figures["loss"], rel=1e-5)
    assert 0.3 < compiled.figures["loss"] < 1.5


class Two(nn.Module):
    """Answers x · left where x > 0 and x · right elsewhere: a batch may reach only one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.zeros(()))
        self.right = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x * (self.left if float(x[0]) > 0 else self.right)


def test_a_parameter_without_a_gradient_in_a_whole_round_is_named() -> None:
    train = TorchTrainer(Two(), {"a": of_numbers([1])}, ONE_BY_ONE, nn.functional.mse_loss)
    with pytest.raises(
        SettingError, match=r"^parameter 'right' got no gradient in a whole round.*allow_unused"
    ):
        train(TrainTask("a", 1, train.initial, 2))


def test_a_parameter_without_a_gradient_may_be_allowed() -> None:
    training = LocalTraining(0.25, momentum=0.0, batch_size=1, allow_unused=True)
    train = TorchTrainer(Two(), {"a": of_numbers([1])}, training, nn.functional.mse_loss)
    assert train(TrainTask("a", 1, train.initial, 1)).delta.tolist() == [0.5, 0.0]


def two_by_turns(optimizers: bool = False) -> TorchTrainer:
    """Examples 1 → 1 and −1 → −1, one per batch, in an order that the seed draws."""
    x = torch.tensor([[1.0], [-1.0]])

    def sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.25)

    return TorchTrainer(
        Two(),
        {"a": TensorExamples(x, x)},
        LocalTraining(
            0.25,
            momentum=0.0,
            decay=1.0,
            batch_size=1,
            optimizers={"a": sgd} if optimizers else None,
        ),
        nn.functional.mse_loss,
    )


@pytest.mark.parametrize("optimizers", [False, True])
def test_the_proximal_pull_acts_on_parameters_that_a_batch_does_not_reach(optimizers: bool) -> None:
    # x ← x − ¼ · (2 · (x − 1) + μ · x) for the one that the batch reaches, x ← x − ¼ · μ · x for
    # the other. With μ = 2: the first goes 0 → ½ → ¼, the second 0 → 0 → ½.
    train = two_by_turns(optimizers)
    delta = train(TrainTask("a", 1, train.initial, 1, proximal_mu=2.0)).delta
    assert sorted(delta.tolist()) == [0.25, 0.5]


class Checkpointed(nn.Module):
    """A first layer behind a checkpoint, whose input must require a gradient to be trained."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 4), nn.Linear(4, 2)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        if self.reentrant is None:
            hidden = self.inner(x)
        else:
            x = x.detach().requires_grad_()
            hidden = checkpoint(self.inner, x, use_reentrant=self.reentrant)
        out: Tensor = self.last(hidden)
        return out

    def inner(self, x: Tensor) -> Tensor:
        """Uses the last layer's weight too: part of its gradient comes through the checkpoint."""
        out: Tensor = torch.tanh(self.first(x))
        return out + (out @ self.last.weight.t()).sum(dim=1, keepdim=True)


@pytest.mark.parametrize("reentrant", [True, False])
def test_parameters_behind_a_checkpoint_are_trained_as_without_it(reentrant: bool) -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(20, 6, generator=draw)
    examples = TensorExamples(x, (x.sum(dim=1) > 0).long())
    deltas = []
    for module in (Checkpointed(None), Checkpointed(reentrant)):
        train = TorchTrainer(module, {"a": examples}, LocalTraining(batch_size=10))
        deltas.append(train(TrainTask("a", 1, train.initial, 2)).delta)
    plain, checkpointed = deltas
    assert np.abs(plain).min() > 0
    np.testing.assert_allclose(checkpointed, plain, rtol=1e-5, atol=1e-8)


def test_gradients_that_the_module_comes_with_do_not_count() -> None:
    fresh, used = zero_line(), zero_line()
    used.weight.grad = torch.full_like(used.weight, 1000.0)
    first, second = (
        TorchTrainer(module, {"a": of_numbers([1, 2])}, loss=nn.functional.mse_loss)
        for module in (fresh, used)
    )
    task = TrainTask("a", 1, first.initial, 1)
    assert np.array_equal(first(task).delta, second(task).delta)
    assert used.weight.grad is None
