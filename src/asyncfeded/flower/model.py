"""The entries of a model as Flower's messages carry them, and their places in the flat vector."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from torch import Tensor, nn

from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import FLOAT32
from asyncfeded.learning.flat import FlatModule


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a model: its name in `state_dict`, and the elements of the vector it lies in.

    Integers lie there as limbs, so their type is another than the vector's.
    """

    name: str
    start: int
    end: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def is_exact(self) -> bool:
        """Whether these are integers or booleans."""
        return self.dtype != FLOAT32


Layout = tuple[Entry, ...]


def layout_of(module: nn.Module) -> Layout:
    """Every tensor of a module's `state_dict`, in its order; a tied tensor has an entry per name.

    The module is left as it is.
    """
    schema = FlatModule(deepcopy(module)).schema
    starts = [0, *accumulate(schema.lengths)]
    places = dict(zip(schema.names, zip(starts, schema.lengths, strict=False), strict=True))
    first_names: dict[int, str] = {}
    for name, tensor in _named(module):
        first_names.setdefault(id(tensor), name)

    def entry(name: str, tensor: object) -> Entry:
        place = places.get(first_names.get(id(tensor), ""))
        if place is None or not isinstance(tensor, Tensor):
            raise SettingError(
                f"model must have nothing in its state_dict but parameters and buffers; "
                f"{name!r} is neither"
            )
        start, length = place
        dtype = tensor.detach().cpu().numpy().dtype
        return Entry(name, start, start + length, tuple(tensor.shape), dtype)

    return tuple(entry(*item) for item in module.state_dict(keep_vars=True).items())


def size_of(layout: Layout) -> int:
    """How many elements the vector has."""
    return max(entry.end for entry in layout)


def _named(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()
