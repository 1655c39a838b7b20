"""Where torch computes: on the CPU, or on a device that the module and the data are moved to once.

No GPU is needed here: memory apart from NumPy's, and devices that hold no data, take its place.
"""

import gc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from asyncfeded import LocalTraining, Ray, TrainTask, Virtual, federate
from asyncfeded.core.errors import SettingError
from asyncfeded.learning import flat
from asyncfeded.learning import trainer as of_trainers
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.device import CPU, OnDevice, find_device, generator_of, moved
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.trainer import TorchTrainer

ELSEWHERE = torch.device("meta")
"""A device that is not the CPU; its tensors have shapes and no values."""


def examples(seed: int, per_epoch: int | None = None) -> TensorExamples:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(30, 6, generator=draw)
    return TensorExamples(x, (x.sum(dim=1) > 0).long(), per_epoch)


class Net(nn.Module):
    """Has all that a module can have: statistics, a counter, a constant, random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(6, 5), nn.BatchNorm1d(5)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(5, 2)
        self.constant: Tensor
        self.replaced: Tensor
        self.register_buffer("constant", torch.tensor([2.0]), persistent=False)
        self.register_buffer("replaced", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.replaced = self.replaced + 1
        return self.last(self.drop(self.norm(self.first(x)).relu() * self.constant))  # type: ignore[no-any-return]


def net() -> nn.Module:
    torch.manual_seed(0)
    return Net()


def trained(**training: Any) -> tuple[list[Any], dict[str, float]]:
    """Some rounds of two clients, and how good the model is that they end with."""
    data = {"a": examples(0), "b": examples(1)}
    train = TorchTrainer(net(), data, LocalTraining(learning_rate=0.1, batch_size=8, **training))
    parameters, rounds = train.initial, []
    for number, client in enumerate("abab"):
        mu = 0.1 * number
        update = train(TrainTask(client, 1, parameters, 2, number // 2, mu))
        parameters = parameters + update.delta
        rounds.append((update.delta.tolist(), update.figures["loss"]))
    return rounds, Evaluator(net(), data)(parameters)


def test_the_cpu_is_the_default() -> None:
    assert LocalTraining().device == "cpu"
    assert trained() == trained(device="cpu")


@pytest.mark.parametrize("optimizer", [None, lambda weights: torch.optim.Adam(weights, lr=0.01)])
def test_a_module_whose_memory_is_apart_trains_to_the_same_bits(
    optimizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizers = None if optimizer is None else {"a": optimizer}
    together = trained(optimizers=optimizers)
    monkeypatch.setattr(flat, "_is_here", lambda device: False)
    assert trained(optimizers=optimizers) == together


def test_a_delta_is_a_vector_of_numpy_s_wherever_the_module_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flat, "_is_here", lambda device: False)
    train = TorchTrainer(net(), {"a": examples(0)})
    delta = train(TrainTask("a", 1, train.initial, 1)).delta
    assert isinstance(delta, np.ndarray)
    assert (str(delta.dtype), delta.ndim) == ("float32", 1)


class Moves:
    """Moves nothing, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, tensor: Tensor, device: torch.device) -> Tensor:
        assert device == ELSEWHERE
        self.count += 1
        return tensor


def test_the_data_of_a_client_are_moved_once_and_not_per_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moves = Moves()
    monkeypatch.setattr(of_trainers, "OnDevice", lambda device: OnDevice(ELSEWHERE, moves))
    trained()  # four rounds of two clients, each with inputs and targets
    assert moves.count == 4


def test_a_module_is_moved_once_and_not_per_round(monkeypatch: pytest.MonkeyPatch) -> None:
    train = TorchTrainer(net(), {"a": examples(0)})
    memory = train._flat.vector.data_ptr()
    kinds = set()
    to = Tensor.to

    def counting(self: Tensor, *given: Any) -> Tensor:
        kinds.add(self.dtype)
        return to(self, *given)

    monkeypatch.setattr(Tensor, "to", counting)
    for number in range(3):
        train(TrainTask("a", 1, train.initial, 1, number))
    assert kinds == {torch.int64}  # only the order of the mini-batches
    assert {p.untyped_storage().data_ptr() for p in train._flat.trainable} == {memory}


def test_data_that_are_gone_here_are_gone_from_the_device() -> None:
    there = OnDevice(ELSEWHERE)
    first, second = examples(0, per_epoch=5), examples(1)
    copy = there(first)
    assert (copy.x.device, copy.y.device, len(copy)) == (ELSEWHERE, ELSEWHERE, 5)
    assert there(first) is copy
    assert there(second) is not copy
    del first
    gc.collect()
    assert len(there._copies) == 1


def test_data_stay_where_they_are_on_the_cpu() -> None:
    data = examples(0)
    assert OnDevice(CPU)(data) is data


def test_windows_of_a_text_take_no_more_memory_on_a_device_than_here() -> None:
    text = torch.arange(1000)
    windows = text[100:].as_strided((800, 80), (1, 1))
    assert torch.equal(moved(windows, CPU), windows)
    copy = moved(windows, ELSEWHERE)
    assert (copy.shape, copy.stride()) == ((800, 80), (1, 1))
    assert copy.untyped_storage().nbytes() == (800 + 80 - 1) * 8


def test_the_generator_of_a_device_is_set_and_put_back() -> None:
    generator = torch.Generator().manual_seed(7)
    before = generator.get_state()
    with reproducible(b"12345678", generator):
        drawn = torch.rand(3, generator=generator)
        assert torch.equal(drawn, torch.rand(3))  # both are set by the key
    assert torch.equal(generator.get_state(), before)
    assert generator_of(CPU) is torch.default_generator


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "CUDA", "meta", "", 0, None])
def test_a_device_of_another_name_is_refused(device: Any) -> None:
    with pytest.raises(SettingError) as raised:
        LocalTraining(device=device)
    assert str(raised.value) == (
        f"device must be 'cpu', 'cuda', 'cuda:N' or 'mps'; given {device!r}"
    )


def test_compiled_code_trains_on_the_cpu_alone() -> None:
    with pytest.raises(SettingError, match=r"^device must be 'cpu' for kernel 'compiled'; given"):
        LocalTraining(kernel="compiled", device="cuda")


@pytest.mark.parametrize(
    ("device", "built_with", "found", "reason"),
    [
        ("cuda", None, 0, "this torch is built without CUDA"),
        ("cuda", "12.6", 0, "torch finds 0 GPUs here"),
        ("cuda:2", "12.6", 2, "torch finds 2 GPUs here"),
        ("mps", None, 0, "torch finds no GPU of Apple's here"),
    ],
)
def test_a_device_that_is_not_there_is_refused_with_the_reason(
    device: str, built_with: str | None, found: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", built_with)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(SettingError) as raised:
        find_device(device)
    assert str(raised.value) == f"device must be one that torch finds; given {device!r}: {reason}"


def test_a_gpu_that_torch_finds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("cuda:1") == torch.device("cuda", 1)


def test_a_missing_device_is_said_before_anything_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    told: list[Any] = []
    data = [(examples(n).x, examples(n).y) for n in range(2)]
    training = LocalTraining(device="cuda")
    with pytest.raises(SettingError, match=r"^device must be one that torch finds; given"):
        federate(net(), data, training=training, callbacks=[lambda *event: told.append(event)])
    assert told == []


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (Virtual(workers=2), "workers must be 1 where clients train on a GPU; given 2"),
        (Ray(), r"world must be a Virtual one where clients train on a GPU; given Ray\(.*"),
    ],
)
def test_a_gpu_belongs_to_one_process(
    world: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncfeded.federation.find_device", lambda name: None)
    data = [(examples(n).x, examples(n).y) for n in range(2)]
    with pytest.raises(SettingError, match=f"^{message}$"):
        federate(net(), data, world=world, training=LocalTraining(device="cuda"))
