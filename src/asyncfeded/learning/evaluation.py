"""How good a model is on test data."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.reproducible import one_thread
from asyncfeded.learning.trainer import Loss, split

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
    """Measures parameters on fixed test data: the share of right answers and the mean loss.

    It takes the module over, so it needs one of its own beside the trainer's.
    """

    def __init__(
        self,
        module: nn.Module,
        examples: TensorExamples,
        loss: Loss = nn.functional.cross_entropy,
        correct: Correct = highest_score_is_right,
        batch_size: int = 2048,
    ) -> None:
        self._flat = FlatModule(module)
        self._module = module
        self._examples = examples
        self._loss = loss
        self._correct = correct
        self._batch_size = batch_size

    def __call__(self, parameters: Vector) -> tuple[float, float]:
        """(accuracy, loss) of these parameters."""
        self._flat.load(parameters)
        self._module.eval()
        right, answers, loss = 0, 0, 0.0
        with torch.no_grad(), one_thread():
            for x, y in split(self._examples.x, self._examples.y, self._batch_size):
                output = self._module(x)
                verdicts = self._correct(output, y)
                right += int(verdicts.sum())
                answers += verdicts.numel()
                loss += float(self._loss(output, y)) * len(y)
        return right / answers, loss / len(self._examples)
