"""A torch module whose parameters and buffers are views into one flat float32 vector.

Layout: first the parameters that are trained, then frozen parameters and buffers (batch-norm
statistics, say), which travel with the model. Buffers that are not floating-point cannot be views;
they are copied in and out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import torch
from torch import Tensor, nn

from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import Vector


@dataclass(frozen=True, slots=True)
class Schema:
    """Names, shapes and types of what lies in a flat vector, in order."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    trained: int
    size: int

    @property
    def sha256(self) -> str:
        """A digest that two models share only if their vectors mean the same."""
        return sha256(
            repr((self.names, self.shapes, self.dtypes, self.trained)).encode()
        ).hexdigest()


class FlatModule:
    """Takes a module over: from now on it lives in `vector`; `array` is the same memory."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.trainable = [p for p in module.parameters() if p.requires_grad]
        if not self.trainable:
            raise SettingError(
                "the module must have a parameter that requires a gradient; it has none"
            )
        frozen = [(n, p) for n, p in module.named_parameters() if not p.requires_grad]
        entries: list[tuple[str, Tensor]] = [
            *((n, p) for n, p in module.named_parameters() if p.requires_grad),
            *frozen,
            *module.named_buffers(),
        ]
        for name, tensor in entries:
            _check(name, tensor)
        self.schema = Schema(
            names=tuple(name for name, _ in entries),
            shapes=tuple(tuple(tensor.shape) for _, tensor in entries),
            dtypes=tuple(str(tensor.dtype) for _, tensor in entries),
            trained=sum(p.numel() for p in self.trainable),
            size=sum(tensor.numel() for _, tensor in entries),
        )
        self.vector = torch.empty(self.schema.size)
        self.array: Vector = self.vector.numpy()
        self._copied: list[tuple[Tensor, Tensor]] = []
        views = split_like(self.vector, [tensor for _, tensor in entries])
        for (_, tensor), view in zip(entries, views, strict=True):
            view.copy_(tensor.detach())
            if tensor.is_floating_point():
                tensor.data = view
            else:
                self._copied.append((tensor, view))

    def load(self, parameters: Vector) -> None:
        """Make these the module's parameters and buffers."""
        np.copyto(self.array, parameters)
        for buffer, view in self._copied:
            buffer.copy_(view)

    def collect(self) -> Vector:
        """The module's parameters and buffers now: the memory that they live in."""
        for buffer, view in self._copied:
            view.copy_(buffer)
        return self.array


def split_like(vector: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Views into the beginning of `vector`, one of the shape of each tensor."""
    views, start = [], 0
    for tensor in tensors:
        views.append(vector[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()
    return views


def _check(name: str, tensor: Tensor) -> None:
    if tensor.is_floating_point() and tensor.dtype != torch.float32:
        raise SettingError(
            f"parameter {name!r} must be float32; given {tensor.dtype}: call module.float() first"
        )
    if tensor.device.type != "cpu":
        raise SettingError(
            f"parameter {name!r} must be on the cpu; given {tensor.device}: call module.cpu() first"
        )
