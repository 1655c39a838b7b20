"""A torch module whose parameters and buffers live in one flat float32 vector.

Layout, in order:

1. the parameters that are trained;
2. frozen parameters and floating-point buffers, such as batch-norm statistics;
3. integer and boolean buffers, such as a counter of batches.

Parts 1 and 2 are views into the vector, which lies where torch computes. Part 3 is copied in and
out as limbs (limbs.py), so integers keep their value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.device import CPU
from asyncfeded.learning.limbs import from_limbs, to_limbs
from asyncfeded.learning.memory_sharing import overlapping_pair, overlaps_itself

LIMBS = {
    torch.bool: 1,
    torch.int8: 1,
    torch.uint8: 1,
    torch.int16: 1,
    torch.uint16: 1,
    torch.int32: 2,
    torch.uint32: 2,
    torch.int64: 4,
    torch.uint64: 4,
}
"""The number of elements of an integer or a boolean in the vector, by type."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Names, shapes, types and lengths of the tensors in a flat vector, in order.

    The first `trained` elements are trained; the last `exact` elements are limbs of integers.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    lengths: tuple[int, ...]
    trained: int
    exact: int
    size: int

    @property
    def sha256(self) -> str:
        """A digest of all this: two modules with the same digest share flat vectors."""
        return sha256(repr(self).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A buffer: its place in its module, and the tensor that belongs there."""

    name: str
    owner: nn.Module
    own_name: str
    tensor: Tensor

    def current(self) -> Tensor | None:
        """The tensor in the buffer's place now: the module may have put another one there."""
        return self.owner._buffers.get(self.own_name)


class FlatModule:
    """Takes a module over: from now on it lives in `vector`; `array` is the same memory.

    On another device than the CPU, `array` is a copy, which `load` and `collect` carry across. It
    refuses a module that it cannot take over, and leaves it as it was.
    """

    def __init__(self, module: nn.Module, device: torch.device = CPU) -> None:
        named = list(module.named_parameters())
        persistent, others = _buffers(module)
        trained = [(name, parameter) for name, parameter in named if parameter.requires_grad]
        frozen = [(name, parameter) for name, parameter in named if not parameter.requires_grad]
        kept = [*frozen, *((buffer.name, buffer.tensor) for buffer in persistent)]
        floats = [*trained, *((name, tensor) for name, tensor in kept if _is_float(tensor))]
        exact = [(name, tensor) for name, tensor in kept if not _is_float(tensor)]
        if not trained:
            raise SettingError("the module must have a parameter that requires a gradient")
        for name, tensor in (*floats, *exact):
            _check(name, tensor, device)
        _check_memory(
            [*floats, *exact, *((buffer.name, buffer.tensor) for buffer in others)],
            trained=[tensor for _, tensor in trained],
        )

        entries = [*floats, *exact]
        lengths = [LIMBS.get(tensor.dtype, 1) * tensor.numel() for _, tensor in entries]
        self.trainable = [parameter for _, parameter in trained]
        self.schema = Schema(
            names=tuple(name for name, _ in entries),
            shapes=tuple(tuple(tensor.shape) for _, tensor in entries),
            dtypes=tuple(str(tensor.dtype) for _, tensor in entries),
            lengths=tuple(lengths),
            trained=sum(lengths[: len(trained)]),
            exact=sum(lengths[len(floats) :]),
            size=sum(lengths),
        )
        self.vector = torch.empty(self.schema.size, dtype=torch.float32, device=device)
        self._copy = None if _is_here(device) else torch.empty(self.schema.size)
        self.array: Vector = (self.vector if self._copy is None else self._copy).numpy()
        self._floats: dict[int, Tensor] = {}
        for (_, tensor), view in zip(
            floats, split_like(self.vector, [tensor for _, tensor in floats]), strict=True
        ):
            view.copy_(tensor.detach())
            tensor.data = view
            self._floats[id(tensor)] = view
        for tensor in (*(tensor for _, tensor in exact), *(buffer.tensor for buffer in others)):
            if tensor.device.type != device.type:
                tensor.data = tensor.data.to(device)
        self._exact: list[tuple[Tensor, Vector]] = []
        starts = np.cumsum([self.schema.size - self.schema.exact, *lengths[len(floats) :]])
        for (_, tensor), start, end in zip(exact, starts[:-1], starts[1:], strict=True):
            self._exact.append((tensor, self.array[start:end]))
        self._persistent = persistent
        self._owners = [(owner, dict(owner._buffers)) for owner in module.modules()]
        self._others = [
            (buffer.tensor, buffer.tensor.detach().clone())
            for buffer in others
            if not overlaps_itself(buffer.tensor)  # torch itself refuses to write to it
        ]
        self._write_exact()

    def load(self, parameters: Vector) -> None:
        """Make these the module's parameters and buffers, and reset all other buffers."""
        np.copyto(self.array, parameters)
        if self._copy is not None:
            self.vector.copy_(self._copy)
        self.reset_buffers()
        for tensor, limbs in self._exact:
            tensor.copy_(_from_limbs(limbs, tensor))

    def reset_buffers(self) -> None:
        """Put every buffer's tensor back in its place.

        Buffers that are no part of the model's state also get their first values.
        """
        for owner, first in self._owners:
            if len(owner._buffers) != len(first):
                owner._buffers.clear()
            owner._buffers.update(first)
        for tensor, first_values in self._others:
            tensor.detach().copy_(first_values)

    def collect(self) -> Vector:
        """The module's parameters and buffers now: the memory that they live in.

        If the module has put another tensor in a buffer's place, its values are copied.
        """
        for buffer in self._persistent:
            now = buffer.current()
            if now is not None and now is not buffer.tensor:
                place = self._floats.get(id(buffer.tensor), buffer.tensor)
                place.copy_(now.detach())
        if self._copy is not None:
            self._copy.copy_(self.vector)
        self._write_exact()
        return self.array

    def _write_exact(self) -> None:
        for tensor, limbs in self._exact:
            limbs[:] = _to_limbs(tensor)


def _buffers(module: nn.Module) -> tuple[list[_Buffer], list[_Buffer]]:
    """The buffers in a model's state_dict, and the other buffers: each once.

    A tensor that is both belongs to the state_dict.
    """
    persistent: dict[int, _Buffer] = {}
    others: dict[int, _Buffer] = {}
    for prefix, owner in module.named_modules():
        for name, tensor in owner._buffers.items():
            if tensor is not None:
                whole = f"{prefix}.{name}" if prefix else name
                found = others if name in owner._non_persistent_buffers_set else persistent
                found.setdefault(id(tensor), _Buffer(whole, owner, name, tensor))
    return (
        list(persistent.values()),
        [buffer for key, buffer in others.items() if key not in persistent],
    )


def split_like(vector: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Views into the beginning of `vector`, in the shapes of these tensors."""
    views, start = [], 0
    for tensor in tensors:
        views.append(vector[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()
    return views


def _to_limbs(tensor: Tensor) -> npt.NDArray[np.unsignedinteger]:
    """The limbs of a tensor's integers."""
    return to_limbs(tensor.detach().cpu().numpy())


def _from_limbs(limbs: Vector, like: Tensor) -> Tensor:
    """Integers of the shape and type of `like`."""
    dtype = torch.empty(0, dtype=like.dtype).numpy().dtype
    return torch.from_numpy(from_limbs(limbs, dtype)).view(like.shape)


def _is_float(tensor: Tensor) -> bool:
    return tensor.dtype not in LIMBS  # other types are refused


def _is_here(device: torch.device) -> bool:
    """Whether NumPy can read and write a device's memory."""
    return device.type == "cpu"


def _check(name: str, tensor: Tensor, device: torch.device) -> None:
    what = f"{_kind(tensor)} {name!r}"
    if nn.parameter.is_lazy(tensor):
        raise SettingError(f"{what} has no shape yet: call the module once on an example first")
    if tensor.dtype != torch.float32 and tensor.dtype not in LIMBS:
        real = tensor.is_floating_point()
        raise SettingError(
            f"{what} must be float32; given {tensor.dtype}: "
            + ("call module.float() first" if real else "other kinds of numbers are not supported")
        )
    if tensor.layout != torch.strided:
        raise SettingError(f"{what} must be dense; given {tensor.layout}: call to_dense() first")
    if tensor.device.type not in ("cpu", device.type):
        raise SettingError(
            f"{what} must be on the cpu; given {tensor.device}: call module.cpu() first; "
            "LocalTraining(device=…) says where it is trained"
        )
    if _is_float(tensor) and not bool(torch.isfinite(tensor).all()):
        raise SettingError(
            f"{what} must be finite; it has a NaN or an infinity: "
            "a constant can be a buffer with persistent=False"
        )


def _check_memory(named: Sequence[tuple[str, Tensor]], trained: Iterable[Tensor]) -> None:
    """Refuse tensors that share memory: in the flat vector each would have its own place."""
    names = {id(tensor): name for name, tensor in named}
    for tensor in trained:
        if overlaps_itself(tensor):
            raise SettingError(
                f"parameter {names[id(tensor)]!r} must have memory of its own for every element; "
                "it is an expanded view: call clone() on it"
            )
    pair = overlapping_pair([tensor for _, tensor in named])
    if pair is not None:
        first, second = (f"{_kind(tensor)} {names[id(tensor)]!r}" for tensor in pair)
        raise SettingError(
            f"{first} and {second} must not share memory: to tie parameters, make them the same "
            "nn.Parameter (b.weight = a.weight); to keep them apart, call clone() on one"
        )


def _kind(tensor: Tensor) -> str:
    return "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
