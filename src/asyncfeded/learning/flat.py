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


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A buffer: its place in its module, and the tensor that belongs there."""

    name: str
    owner: nn.Module
    own_name: str
    tensor: Tensor


class FlatModule:
    """Takes a module over: from now on it lives in `vector`; `array` is the same memory."""

    def __init__(self, module: nn.Module) -> None:
        named = list(module.named_parameters())
        self.trainable = [parameter for _, parameter in named if parameter.requires_grad]
        if not self.trainable:
            raise SettingError("the module must have a parameter that requires a gradient")
        buffers = _persistent_buffers(module)
        entries: list[tuple[str, Tensor]] = [
            *((name, parameter) for name, parameter in named if parameter.requires_grad),
            *((name, parameter) for name, parameter in named if not parameter.requires_grad),
            *((buffer.name, buffer.tensor) for buffer in buffers),
        ]
        for name, tensor in entries:
            _check(name, tensor)
        self.schema = Schema(
            names=tuple(name for name, _ in entries),
            shapes=tuple(tuple(tensor.shape) for _, tensor in entries),
            dtypes=tuple(str(tensor.dtype) for _, tensor in entries),
            trained=sum(parameter.numel() for parameter in self.trainable),
            size=sum(tensor.numel() for _, tensor in entries),
        )
        self.vector = torch.empty(self.schema.size)
        self.array: Vector = self.vector.numpy()
        views = split_like(self.vector, [tensor for _, tensor in entries])
        for (_, tensor), view in zip(entries, views, strict=True):
            view.copy_(tensor.detach())
            if tensor.is_floating_point():
                tensor.data = view
        self._buffers = list(zip(buffers, views[len(named) :], strict=True))

    def load(self, parameters: Vector) -> None:
        """Make these the module's parameters and buffers."""
        np.copyto(self.array, parameters)
        for buffer, view in self._buffers:
            buffer.owner._buffers[buffer.own_name] = buffer.tensor
            if not buffer.tensor.is_floating_point():
                buffer.tensor.copy_(view)

    def collect(self) -> Vector:
        """The module's parameters and buffers now: the memory that they live in.

        A module may have put another tensor in a buffer's place; its values are taken over.
        """
        for buffer, view in self._buffers:
            now = buffer.owner._buffers[buffer.own_name]
            if now is not None and (now is not buffer.tensor or not now.is_floating_point()):
                view.copy_(now.detach())
        return self.array


def _persistent_buffers(module: nn.Module) -> list[_Buffer]:
    """The buffers that belong to a model's state, as in its state_dict: each once."""
    found: dict[int, _Buffer] = {}
    for prefix, owner in module.named_modules():
        for name, tensor in owner._buffers.items():
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                whole = f"{prefix}.{name}" if prefix else name
                found.setdefault(id(tensor), _Buffer(whole, owner, name, tensor))
    return list(found.values())


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
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise SettingError(
            f"parameter {name!r} must be finite; it has a NaN or an infinity: "
            "a constant can be a buffer with persistent=False"
        )
    if tensor.device.type != "cpu":
        raise SettingError(
            f"parameter {name!r} must be on the cpu; given {tensor.device}: call module.cpu() first"
        )
