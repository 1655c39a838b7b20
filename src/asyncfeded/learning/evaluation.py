"""How good a model is on test data: accuracy, loss, and the user's own metrics."""

from collections.abc import Callable, Mapping
from numbers import Real

import torch
from torch import Tensor, nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.core.metrics import ACCURACY, LOSS
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples, join
from asyncfeded.learning.device import OnDevice, find_device, generator_of
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.local_training import CPU
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.rounds import batch_sizes, split
from asyncfeded.learning.trainer import Loss

Metric = Callable[[Tensor, Tensor], float]
"""A function of the module's outputs on all test examples and of their targets."""


class Evaluator:
    """Measures parameters on test data in parts, a part per client.

    Loss is always measured. Accuracy is the share of examples whose highest score, along
    dimension 1, is that of the target; it is measured if the targets are classes, that is whole
    numbers. `metrics` adds others; a metric named "accuracy" replaces that share.

    The module computes on `device`; `metrics` are given tensors on the CPU in any case.

    The evaluator takes the module over, so it needs another module than the trainer's. A module
    that draws at random draws the same each time, in any process.
    """

    def __init__(
        self,
        module: nn.Module,
        parts: Mapping[str, TensorExamples],
        loss: Loss = nn.functional.cross_entropy,
        metrics: Mapping[str, Metric] | None = None,
        batch_size: int = 512,
        device: str = CPU,
    ) -> None:
        place = find_device(device)
        self._on_device = OnDevice(place)
        self._generator = generator_of(place)
        self._union = join(list(parts.values()))
        self._flat = FlatModule(module, place)
        self._module = module
        self._parts = parts
        self._loss = loss
        self._metrics = dict(metrics or {})
        self._counts_right = ACCURACY not in self._metrics and _are_classes(self._union.y)
        self._batch_size = batch_size

    def __call__(self, parameters: Vector) -> dict[str, float]:
        """Every metric of these parameters on the union of all parts."""
        return self._measure(parameters, self._union)

    def of_each(self, parameters: Vector) -> dict[str, dict[str, float]]:
        """Every metric of these parameters on every part."""
        return {name: self._measure(parameters, part) for name, part in self._parts.items()}

    def _measure(self, parameters: Vector, examples: TensorExamples) -> dict[str, float]:
        self._flat.load(parameters)
        self._module.eval()
        right, answers, loss = 0, 0, 0.0
        outputs: list[Tensor] = []
        there = self._on_device(examples)
        with torch.no_grad(), reproducible(randomness.key(0, "evaluation"), self._generator):
            sizes = batch_sizes(len(examples.y), self._batch_size)
            for x, y in split(there.x, there.y, sizes):
                output = self._module(x)
                if self._counts_right:
                    verdicts = _highest_score_is_right(output, y)
                    right += int(verdicts.sum())
                    answers += verdicts.numel()
                loss += float(self._loss(output, y)) * len(y)
                if self._metrics:
                    outputs.append(output.cpu())
        self._flat.reset_buffers()  # the module may be given to another evaluator
        measured = {ACCURACY: right / answers} if self._counts_right else {}
        measured[LOSS] = loss / len(examples)
        if self._metrics:
            whole = torch.cat(outputs)
            for name, metric in self._metrics.items():
                measured[name] = _number(name, metric(whole, examples.y))
        return measured


def _are_classes(targets: Tensor) -> bool:
    return not (targets.is_floating_point() or targets.is_complex())


def _highest_score_is_right(output: Tensor, target: Tensor) -> Tensor:
    if output.ndim != target.ndim + 1:
        raise SettingError(
            f"accuracy needs scores of shape (examples, classes, …) and targets of shape "
            f"(examples, …); given {tuple(output.shape)} and {tuple(target.shape)}: "
            'pass metrics={"accuracy": …}, a function of all outputs and targets'
        )
    return output.argmax(dim=1) == target


def _number(name: str, value: object) -> float:
    """A metric's value: a number, or a tensor of one element."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, Real):
        given = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise SettingError(f"metric {name!r} must return a number; given {given}")
    return float(value)
