"""Local training with torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncfeded.learning.compiled import CompiledTrainer
    from asyncfeded.learning.evaluation import Evaluator
    from asyncfeded.learning.trainer import TorchTrainer

__all__ = [
    "CompiledTrainer",
    "Evaluator",
    "TorchTrainer",
]

_LATER = {
    "CompiledTrainer": "asyncfeded.learning.compiled",
    "Evaluator": "asyncfeded.learning.evaluation",
    "TorchTrainer": "asyncfeded.learning.trainer",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
