"""Compiled training: as torch's up to rounding, and the same bits in any thread."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from torch import Tensor, nn

from asyncfeded import LocalTraining, TrainTask, Virtual, federate, rules
from asyncfeded.core.errors import SettingError, TrainingError
from asyncfeded.learning import compiled
from asyncfeded.learning.chain import read_chain
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.dense import Activation
from asyncfeded.learning.models import mlp
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.trainer import TorchTrainer

TOLERANCE = 1e-5
"""How far a compiled round may lie from torch's, as a share of the way it went."""


class Handwritten(nn.Module):
    """A user's own class: functions instead of modules, one layer without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(7, 3)  # declared first: the order of use is what counts
        self.first = nn.Linear(6, 9, bias=False)
        self.second = nn.Linear(9, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x.flatten(1)))
        x = self.second(x).sigmoid()
        scores: Tensor = self.last(x)
        return scores


MODULES: dict[str, Callable[[], nn.Module]] = {
    "the MLP of Synthetic-1-1": lambda: mlp(6, (20, 10), 3),
    "logistic regression": lambda: nn.Linear(6, 3),
    "flattened, with nothing in between": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(6, 5), nn.Identity(), nn.Linear(5, 3), nn.ReLU()
    ),
    "a class of the user's": Handwritten,
}


def make(name: str) -> nn.Module:
    torch.manual_seed(3)
    return MODULES[name]()


def examples(count: int = 65, seed: int = 0) -> TensorExamples:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, 3, generator=draw)
    return TensorExamples(x.reshape(count, 6), torch.randint(0, 3, (count,), generator=draw))


def far_apart(ours: Any, theirs: Any) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    ("training", "mu"),
    [
        (LocalTraining(learning_rate=0.1), 0.0),
        (LocalTraining(learning_rate=0.1, momentum=0.0, batch_size=8), 0.5),
        (LocalTraining(learning_rate=0.3, decay=0.5, decay_per="epoch", batch_size=100), 0.0),
        (LocalTraining(learning_rate=0.1, unit="steps", batch_size=10), 0.0),
    ],
)
def test_a_round_agrees_with_torch_s(name: str, training: LocalTraining, mu: float) -> None:
    data = {"a": examples()}
    ours = CompiledTrainer(make(name), data, training, seed=5)
    theirs = TorchTrainer(make(name), data, training, seed=5)
    assert ours.initial.tobytes() == theirs.initial.tobytes()
    task = TrainTask("a", 1, ours.initial, epochs=11, round=2, proximal_mu=mu)
    update = ours(task)
    assert far_apart(update.delta, theirs(task).delta) < TOLERANCE
    assert (update.num_examples, update.epochs, update.round) == (65, 11, 2)


def test_a_mini_batch_longer_than_the_data_takes_no_more_memory_than_they_do() -> None:
    training = LocalTraining(batch_size=10**12)
    train = CompiledTrainer(make("logistic regression"), {"a": examples()}, training)
    assert train(TrainTask("a", 1, train.initial, 1)).num_examples == 65


def test_a_squared_error_agrees_with_torch_s() -> None:
    torch.manual_seed(0)
    data = {"a": TensorExamples(torch.randn(50, 6), torch.randn(50, 3))}
    loss = nn.functional.mse_loss
    ours, theirs = (
        kind(make("a class of the user's"), data, LocalTraining(learning_rate=0.1), loss)
        for kind in (CompiledTrainer, TorchTrainer)
    )
    task = TrainTask("a", 1, ours.initial, epochs=5)
    assert far_apart(ours(task).delta, theirs(task).delta) < TOLERANCE


def test_a_long_round_in_stretches_has_the_bits_of_one_in_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train = CompiledTrainer(make("the MLP of Synthetic-1-1"), {"a": examples()})
    task = TrainTask("a", 1, train.initial, epochs=20)
    whole = train(task).delta
    monkeypatch.setattr(compiled, "VISITS_AT_ONCE", 100)
    assert train(task).delta.tobytes() == whole.tobytes()


def test_a_round_has_the_same_bits_in_any_thread() -> None:
    data = {name: examples(300, seed) for seed, name in enumerate("abcdef")}
    torch.manual_seed(0)
    train = CompiledTrainer(mlp(6, (200, 100), 3), data)
    tasks = [TrainTask(name, 1, train.initial, epochs=4) for name in data] * 4
    alone = [train(task).delta.tobytes() for task in tasks]
    with ThreadPoolExecutor(3) as pool:
        assert [update.delta.tobytes() for update in pool.map(train, tasks)] == alone


def test_blas_has_one_thread_while_anybody_trains_and_then_as_many_as_before() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert threads() == before


def test_a_run_learns_alike_with_either_kernel_and_says_which_it_used() -> None:
    def run(kernel: Any, workers: int = 1) -> Any:
        data = {f"client-{i}": examples(60 + 40 * i, i) for i in range(4)}
        for own in data.values():
            own.y[:] = (own.x[:, 0] > 0) + (own.x[:, 1] > 0)
        return federate(
            make("the MLP of Synthetic-1-1"),
            data,
            rule=rules.asyncfeded(kappa=0),
            training=LocalTraining(learning_rate=0.1, kernel=kernel),
            seconds=6,
            world=Virtual(workers=workers),
        )

    ours, theirs = run("compiled"), run("torch")
    assert (ours.kernel, theirs.kernel) == ("compiled", "torch")
    assert ours.summary()["kernel"] == "compiled"
    assert ours.updates == theirs.updates
    assert ours.max_accuracy == pytest.approx(theirs.max_accuracy, abs=0.03)
    assert ours.log_sha256 != theirs.log_sha256
    assert {run("compiled", workers).log_sha256 for workers in (2, 3)} == {ours.log_sha256}


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.layer(x)
        return result


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.other = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(x)
        return result


def tied() -> nn.Module:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.ReLU(), layer)


def frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 3))
    module[0].weight.requires_grad_(False)
    return module


def hooked() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 3))
    module[0].register_forward_hook(lambda *_: None)
    return module


def misshapen(weight: tuple[int, ...], bias: tuple[int, ...]) -> nn.Module:
    layer = nn.Linear(6, 3)
    layer.weight, layer.bias = nn.Parameter(torch.zeros(weight)), nn.Parameter(torch.zeros(bias))
    return layer


def with_hook_on_a_parameter() -> nn.Module:
    layer = nn.Linear(6, 3)
    layer.weight.register_hook(lambda gradient: 0 * gradient)
    return layer


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (misshapen((3, 6), (1,)), "of 6 inputs and 3 outputs does not fit its parameters"),
        (misshapen((5, 6), (5,)), "of 6 inputs and 3 outputs does not fit its parameters"),
        (nn.Sequential(nn.Linear(6, 5), nn.Linear(4, 3)), "of 4 inputs and 3 outputs does not fit"),
        (with_hook_on_a_parameter(), "parameter 'weight' has hooks"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3)), "'0' is a Conv2d"),
        (nn.Sequential(nn.Linear(6, 3), nn.Dropout()), "is a Dropout"),
        (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), "is a BatchNorm1d"),
        (nn.Sequential(nn.ReLU(), nn.Linear(6, 3)), "does not follow a fully connected layer"),
        (nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Tanh()), "does not follow"),
        (nn.Sequential(nn.Flatten(0), nn.Linear(6, 3)), "is a Flatten"),
        (nn.Identity(), "its output is not that of its last layer"),
        (Branching(), "its forward cannot be followed"),
        (Residual(), "takes more than the output of the layer before it"),
        (Unused(), "parameter 'other.weight' belongs to no fully connected layer"),
        (tied(), "share a parameter"),
        (frozen(), "parameter '0.weight' is frozen"),
        (hooked(), "has hooks"),
    ],
)
def test_what_is_no_chain_is_refused_with_what_is_in_the_way(module: nn.Module, what: str) -> None:
    with pytest.raises(SettingError, match=f"kernel 'compiled' needs a chain of .*{what}"):
        CompiledTrainer(module, {"a": examples()})


def test_a_chain_is_read_in_the_order_of_use() -> None:
    module = Handwritten().eval()
    layers, flattens = read_chain(module)
    assert flattens
    assert not module.training
    assert [layer.linear.in_features for layer in layers] == [6, 9, 7]
    assert [layer.activation for layer in layers] == [
        Activation.TANH,
        Activation.SIGMOID,
        Activation.NONE,
    ]


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_no_class_is_refused_before_anything_is_written_with_it(label: int) -> None:
    data = examples()
    data.y[17] = label
    train = CompiledTrainer(make("logistic regression"), {"a": data})
    with pytest.raises(TrainingError, match="labels must be from 0 to 2"):
        train(TrainTask("a", 1, train.initial, 1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            (torch.zeros(5, 7), torch.zeros(5).long()),
            r"\(examples, 6\) .* float32 of shape \(5, 7\)",
        ),
        ((torch.zeros(5, 6).int(), torch.zeros(5).long()), "has int32 of shape"),
        ((torch.zeros(5, 2, 3), torch.zeros(5).long()), r"float32 of shape \(5, 2, 3\)"),
        ((torch.zeros(5, 6), torch.zeros(5, 3)), "one int64 class per example"),
        ((torch.zeros(5, 6), torch.zeros(5).int()), "has int32 of shape"),
    ],
)
def test_data_that_do_not_fit_are_refused_by_name(data: Any, message: str) -> None:
    train = CompiledTrainer(make("logistic regression"), {"a": TensorExamples(*data)})
    with pytest.raises(SettingError, match=message):
        train(TrainTask("a", 1, train.initial, 1))


def test_another_loss_optimizer_or_client_is_refused() -> None:
    module, data = make("logistic regression"), {"a": examples()}
    with pytest.raises(SettingError, match=r"loss must be torch\.nn\.functional\.cross"):
        CompiledTrainer(module, data, loss=nn.functional.nll_loss)
    train = CompiledTrainer(module, data)
    with pytest.raises(SettingError, match="client 'b' has no data"):
        train(TrainTask("b", 1, train.initial, 1))
    with pytest.raises(SettingError, match="optimizers must be none for kernel 'compiled'"):
        LocalTraining(kernel="compiled", optimizers={"a": torch.optim.Adam})
    with pytest.raises(SettingError, match="kernel must be 'torch' or 'compiled'; given 'jax'"):
        LocalTraining(kernel="jax")  # type: ignore[arg-type]
