"""A learning rate that decays after every step: numbers worked by hand, for both trainers."""

import pytest
import torch
from torch import nn

from asyncfeded import LocalTraining, TrainTask
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.local_training import Unit
from asyncfeded.learning.trainer import TorchTrainer

TRAINERS = (TorchTrainer, CompiledTrainer)


def round_of(
    kind: type[TorchTrainer] | type[CompiledTrainer],
    epochs: int,
    unit: Unit = "epochs",
    mu: float = 0.0,
    number: int = 0,
) -> float:
    """How far one weight w moves from 1 on f(w) = w², with two steps to a pass.

    Both examples are (1, 0), and a mini-batch is one example. The learning rate is 0.1 at first
    and is halved after every step; momentum is 0.5.
    """
    module = nn.Linear(1, 1, bias=False)
    nn.init.ones_(module.weight)
    training = LocalTraining(0.1, 0.5, decay=0.5, decay_per="step", batch_size=1, unit=unit)
    data = {"a": TensorExamples(torch.ones(2, 1), torch.zeros(2, 1))}
    train = kind(module, data, training, nn.functional.mse_loss)
    task = TrainTask("a", 1, train.initial, epochs, round=number, proximal_mu=mu)
    (moved,) = train(task).delta.tolist()
    return float(moved)


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_second_step_of_a_round_has_half_the_rate_of_the_first(kind: type) -> None:
    # v = 2, w = 1 − 0.1 · 2 = 0.8; v = 0.5 · 2 + 1.6 = 2.6, w = 0.8 − 0.05 · 2.6 = 0.67.
    assert round_of(kind, epochs=1) == pytest.approx(0.67 - 1)


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_rate_goes_on_falling_in_the_second_pass(kind: type) -> None:
    # From 0.67: v = 1.3 + 1.34 = 2.64, w = 0.67 − 0.025 · 2.64 = 0.604;
    # v = 1.32 + 1.208 = 2.528, w = 0.604 − 0.0125 · 2.528 = 0.5724.
    assert round_of(kind, epochs=2) == pytest.approx(0.5724 - 1)


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_rate_falls_the_same_where_k_counts_steps(kind: type) -> None:
    assert round_of(kind, epochs=2, unit="steps") == pytest.approx(0.67 - 1)
    assert round_of(kind, epochs=3, unit="steps") == pytest.approx(0.604 - 1)


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_rate_scales_the_pull_of_a_proximal_term_too(kind: type) -> None:
    # v = 2, w = 0.8; v = 0.5 · 2 + 1.6 + 1 · (0.8 − 1) = 2.4, w = 0.8 − 0.05 · 2.4 = 0.68.
    assert round_of(kind, epochs=1, mu=1.0) == pytest.approx(0.68 - 1)


@pytest.mark.parametrize("kind", TRAINERS)
def test_every_round_begins_at_the_whole_rate(kind: type) -> None:
    assert round_of(kind, epochs=2, number=7) == round_of(kind, epochs=2, number=0)
