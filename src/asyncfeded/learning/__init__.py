"""Local training with torch."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.learning.compiled import CompiledTrainer
    from asyncfeded.learning.evaluation import Evaluator
    from asyncfeded.learning.trainer import TorchTrainer

__all__ = [
    "CompiledTrainer",
    "Evaluator",
    "TorchTrainer",
]

__getattr__ = later(
    __name__,
    {
        "CompiledTrainer": "asyncfeded.learning.compiled",
        "Evaluator": "asyncfeded.learning.evaluation",
        "TorchTrainer": "asyncfeded.learning.trainer",
    },
)
