"""What is known of a task's model before it is made: its size, and what can train it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.chain import read_chain
from asyncfeded.learning.local_training import CPU, Kernel
from asyncfeded.tasks.paper_task import RunnableTask, Widths
from asyncfeded.tasks.registry import find_task


@cache
def _shape(task: str, widths: Widths) -> tuple[int, SettingError | None]:
    """The shape of the model of one of our tasks, without memory for its parameters."""
    with torch.device("meta"), _NoInitialWeights():
        module = find_task(task).make_module(widths)
    return _read_shape(module)


def shape_of(task: RunnableTask, widths: Widths) -> tuple[int, SettingError | None]:
    """How many parameters a model has, and why it is no chain of layers, if it is none."""
    return _read_shape(task.make_module(widths)) if task.own else _shape(task.name, widths)


def _read_shape(module: nn.Module) -> tuple[int, SettingError | None]:
    count = sum(parameter.numel() for parameter in module.parameters())
    try:
        read_chain(module)
    except SettingError as error:
        return count, error
    return count, None


class _NoInitialWeights(TorchFunctionMode):
    """Draw no initial weights: nobody reads them here, and torch would load its compiler."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def kernel_for(
    wanted: Kernel | Literal["auto"], no_chain: SettingError | None, device: str
) -> Kernel:
    """What trains a model: as the settings say, or compiled code where there is some."""
    if wanted == "compiled" and no_chain is not None:
        raise no_chain
    if wanted == "auto":
        return "compiled" if no_chain is None and device == CPU else "torch"
    return wanted
