"""How good a model is on test data."""

import torch
from torch import Tensor, nn

from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.reproducible import one_thread
from asyncfeded.learning.trainer import Loss, split


class Evaluator:
    """Measures parameters on fixed test data: the share of right answers and the mean loss.

    It takes the module over, so it needs one of its own beside the trainer's.
    """

    def __init__(
        self,
        module: nn.Module,
        examples: TensorExamples,
        loss: Loss = nn.functional.cross_entropy,
        batch_size: int = 2048,
    ) -> None:
        self._flat = FlatModule(module)
        self._module = module
        self._examples = examples
        self._loss = loss
        self._batch_size = batch_size

    def __call__(self, parameters: Vector) -> tuple[float, float]:
        """(accuracy, loss) of these parameters."""
        self._flat.load(parameters)
        self._module.eval()
        right, loss = 0, 0.0
        with torch.no_grad(), one_thread():
            for x, y in split(self._examples.x, self._examples.y, self._batch_size):
                output = self._module(x)
                right += int(correct(output, y).sum())
                loss += float(self._loss(output, y)) * len(y)
        return right / len(self._examples), loss / len(self._examples)


def correct(output: Tensor, target: Tensor) -> Tensor:
    """Which answers are right: the class of the highest score is the target."""
    return output.argmax(dim=1) == target
