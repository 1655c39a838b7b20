"""How good a model is on test data."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples, join
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.rounds import batch_sizes, split
from asyncfeded.learning.trainer import Loss

Correct = Callable[[Tensor, Tensor], Tensor]
"""Which answers are right, given a module's output and the targets: booleans of any shape."""


def highest_score_is_right(output: Tensor, target: Tensor) -> Tensor:
    """Right where the class of the highest score, along dimension 1, is the target."""
    if output.ndim != target.ndim + 1:
        raise SettingError(
            f"accuracy needs scores of shape (examples, classes, …) and targets of shape "
            f"(examples, …); given {tuple(output.shape)} and {tuple(target.shape)}: "
            "pass correct=… to say which answers are right"
        )
    return output.argmax(dim=1) == target


class Evaluator:
    """Measures parameters on test data in parts, one per client.

    It takes the module over, so it needs one of its own beside the trainer's. A module that draws
    at random draws the same each time, in any process.
    """

    def __init__(
        self,
        module: nn.Module,
        parts: Mapping[str, TensorExamples],
        loss: Loss = nn.functional.cross_entropy,
        correct: Correct = highest_score_is_right,
        batch_size: int = 512,
    ) -> None:
        self._union = join(list(parts.values()))
        self._flat = FlatModule(module)
        self._module = module
        self._parts = parts
        self._loss = loss
        self._correct = correct
        self._batch_size = batch_size

    def __call__(self, parameters: Vector) -> tuple[float, float]:
        """(accuracy, loss) of these parameters on the union of all parts."""
        return self._measure(parameters, self._union)

    def of_each(self, parameters: Vector) -> dict[str, float]:
        """The accuracy of these parameters on every part."""
        return {name: self._measure(parameters, part)[0] for name, part in self._parts.items()}

    def _measure(self, parameters: Vector, examples: TensorExamples) -> tuple[float, float]:
        self._flat.load(parameters)
        self._module.eval()
        right, answers, loss = 0, 0, 0.0
        with torch.no_grad(), reproducible(randomness.key(0, "evaluation")):
            sizes = batch_sizes(len(examples.y), self._batch_size)
            for x, y in split(examples.x, examples.y, sizes):
                output = self._module(x)
                verdicts = _booleans(self._correct(output, y))
                right += int(verdicts.sum())
                answers += verdicts.numel()
                loss += float(self._loss(output, y)) * len(y)
        self._flat.reset_buffers()  # the module may be given to another evaluator
        return right / answers, loss / len(examples)


def _booleans(verdicts: object) -> Tensor:
    if not isinstance(verdicts, Tensor) or verdicts.dtype != torch.bool:
        given = verdicts.dtype if isinstance(verdicts, Tensor) else type(verdicts).__name__
        raise SettingError(
            f"correct must return booleans, True where an answer is right; given {given}"
        )
    return verdicts
