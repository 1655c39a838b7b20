"""A client's examples as tensors in memory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TensorExamples:
    """Inputs and targets, one row each, in memory.

    With `per_epoch`, a pass visits only this many of them, drawn anew each time, spread over all.
    The length is then the number that a pass visits.
    """

    x: Tensor
    y: Tensor
    per_epoch: int | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y"):  # NumPy's default, in which no module computes here
            if getattr(self, name).dtype == torch.float64:
                object.__setattr__(self, name, getattr(self, name).float())
        if len(self.x) != len(self.y):
            raise SettingError(
                f"a data set must have as many targets as inputs; given {len(self.y)} targets "
                f"and {len(self.x)} inputs"
            )
        if len(self.y) == 0:
            raise SettingError("a data set must have at least one example; given none")

        if self.per_epoch is not None and not 1 <= self.per_epoch <= len(self.y):
            raise SettingError(
                f"per_epoch must be from 1 to the {len(self.y)} examples; given {self.per_epoch}"
            )

    def __len__(self) -> int:
        return len(self.y) if self.per_epoch is None else self.per_epoch

    def order(self, draw: np.random.Generator) -> randomness.Places:
        """The places of the examples that a pass visits, in its order."""
        order = draw.permutation(len(self))
        if self.per_epoch is not None:
            order = randomness.one_of_each_part(len(self.y), self.per_epoch, draw)[order]
        return order


def as_examples(dataset: Any) -> TensorExamples:
    """Read a torch dataset of (input, target), or take a pair of arrays or tensors."""
    if isinstance(dataset, TensorExamples):
        return dataset
    if isinstance(dataset, tuple) and len(dataset) == 2:
        x, y = _tensor("inputs", dataset[0]), _tensor("targets", dataset[1])
        return TensorExamples(_owned(x), _owned(y))
    readable = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    if not readable or isinstance(dataset, Tensor | np.ndarray):
        raise SettingError(
            "a data set must be a torch Dataset of (input, target) or a pair (inputs, targets); "
            f"given {type(dataset).__name__}"
        )
    pairs = [dataset[index] for index in range(len(dataset))]
    if not pairs:
        raise SettingError("a data set must have at least one example; given none")
    for index, pair in enumerate(pairs):
        _check_pair(index, pair)
    x = _stacked("inputs", [pair[0] for pair in pairs])
    y = _stacked("targets", [pair[1] for pair in pairs])
    return TensorExamples(x, y)


def _check_pair(index: int, pair: object) -> None:
    if isinstance(pair, tuple | list):
        if len(pair) == 2:
            return
        given = f"{len(pair)} value{'s' if len(pair) > 1 else ''}"
    else:
        given = f"a {type(pair).__name__}"
    raise SettingError(
        f"an example must be a pair (input, target); example {index} is {given}: "
        "whole arrays are given as a tuple (inputs, targets)"
    )


def _tensor(name: str, values: Any) -> Tensor:
    with _one_shape(name):
        tensor = torch.as_tensor(values)
        if tensor.ndim == 0:
            raise ValueError("given a single number")
        return tensor


def _stacked(name: str, values: list[Any]) -> Tensor:
    with _one_shape(name):
        return torch.stack([torch.as_tensor(value) for value in values])


@contextmanager
def _one_shape(name: str) -> Iterator[None]:
    """Say in one line why torch cannot read the values."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        what = str(error).partition("\n")[0]
        raise SettingError(
            f"{name} must be numbers, of the same shape for every example; {what}"
        ) from None


def _owned(tensor: Tensor) -> Tensor:
    """A copy in torch's memory, which has the same alignment everywhere; NumPy's has not.

    Rows that overlap, such as windows of a text, stay views: a copy would take many times the
    memory. Mini-batches are gathered from either into torch's memory.
    """
    overlapping = tensor.ndim == 2 and tensor.stride(1) == 1 and tensor.stride(0) < tensor.shape[1]
    return tensor if overlapping else tensor.clone(memory_format=torch.contiguous_format)


def data_of(datasets: Mapping[str, TensorExamples], client_id: str) -> TensorExamples:
    """A client's examples; an error of making them is passed on."""
    if client_id not in datasets:
        raise SettingError(f"client {client_id!r} has no data")
    return datasets[client_id]


def join(parts: list[TensorExamples]) -> TensorExamples:
    """All examples of several clients, in order."""
    return TensorExamples(torch.cat([part.x for part in parts]), torch.cat([p.y for p in parts]))
