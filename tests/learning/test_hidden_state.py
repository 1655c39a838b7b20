"""State that a module keeps or draws from outside its parameters must not tell processes apart."""
# ruff: noqa: NPY002, S311 - the global generators are what this is about

import random

import numpy as np
import pytest
import torch
from numpy.random import mtrand
from torch import Tensor, nn

from asyncfeded import TrainTask, Virtual, federate
from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.trainer import TorchTrainer


class Remembering(nn.Module):
    """Scales its input by a count of its calls, which is no part of its state."""

    calls: Tensor
    last: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("calls", torch.ones(1), persistent=False)
        self.register_buffer("last", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        scale = self.calls if self.last is None else self.calls + self.last
        self.last = self.calls.clone()
        self.register_buffer(f"call-{int(self.calls)}", torch.ones(1))
        out: Tensor = self.linear(x * scale)
        return out


class FromPython(nn.Linear):
    """Scales its input by a draw from Python's global generator."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * random.random())


class FromNumPy(nn.Linear):
    """Scales its input by draws from NumPy's global generator, three normal numbers at a time."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * float(np.random.randn(3).sum()))


def make(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind() if kind is Remembering else kind(2, 2)


def examples(count: int = 40) -> TensorExamples:
    draw = torch.Generator().manual_seed(count)
    x = torch.randn(count, 2, generator=draw)
    return TensorExamples(x, (x[:, 0] > 0).long())


MODULES = [Remembering, FromPython, FromNumPy]


@pytest.mark.parametrize("kind", MODULES)
def test_a_round_has_the_same_bits_whatever_came_before_it(kind: type[nn.Module]) -> None:
    train = TorchTrainer(make(kind), {"a": examples()})
    task = TrainTask("a", 1, train.initial, 2)
    first = train(task).delta
    random.random()
    np.random.rand()
    assert train(task).delta.tobytes() == first.tobytes()


@pytest.mark.parametrize("kind", MODULES)
def test_an_evaluation_has_the_same_bits_whatever_came_before_it(kind: type[nn.Module]) -> None:
    parameters = FlatModule(make(kind)).collect()
    evaluate = Evaluator(make(kind), {"a": examples()})
    first = evaluate(parameters)
    random.random()
    np.random.rand()
    assert evaluate(parameters) == first


@pytest.mark.parametrize("kind", MODULES)
def test_the_log_is_the_same_for_any_number_of_workers(kind: type[nn.Module]) -> None:
    data = [examples(40), examples(50), examples(60)]
    digests = {
        federate(make(kind), data, seconds=0.5, world=Virtual(workers=workers)).log_sha256
        for workers in (1, 2)
    }
    assert len(digests) == 1


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.PCG64])
def test_the_global_generators_go_on_as_if_nothing_had_happened(
    bits: type[np.random.BitGenerator],
) -> None:
    def draws(between: bool) -> tuple[list[float], float]:
        random.seed(1)
        mtrand.set_bit_generator(bits(1))
        random.gauss()
        np.random.randn(3)  # the fourth is made too, and kept for later
        if between:
            with reproducible(b"0123456789abcdef"):
                random.gauss()
                np.random.randn()
        return np.random.randn(4).tolist(), random.gauss()

    before = mtrand.get_bit_generator()
    try:
        assert draws(between=True) == draws(between=False)
    finally:
        mtrand.set_bit_generator(before)


def test_a_metric_that_returns_no_number_is_refused() -> None:
    metrics = {"f1": lambda output, _: output}
    evaluate = Evaluator(make(FromPython), {"a": examples()}, metrics=metrics)
    with pytest.raises(SettingError, match=r"^metric 'f1' must return a number; given \("):
        evaluate(FlatModule(make(FromPython)).collect())
