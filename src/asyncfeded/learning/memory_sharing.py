"""Which tensors share memory, element by element."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def overlaps_itself(tensor: Tensor) -> bool:
    """Whether two elements of a tensor lie in the same place, as in an expanded view."""
    reach = 1  # of the dimensions so far, those with the smallest steps first
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride < reach:
            return len(np.unique(_addresses(tensor))) < tensor.numel()
        reach += (size - 1) * stride
    return False


def overlapping_pair(tensors: Iterable[Tensor]) -> tuple[Tensor, Tensor] | None:
    """Two tensors that share an element's memory; None if no two do."""
    in_order = sorted(
        (tensor for tensor in tensors if _has_memory(tensor)), key=lambda tensor: tensor.data_ptr()
    )
    open_ended: list[Tensor] = []
    for tensor in in_order:
        open_ended = [other for other in open_ended if _end(other) > tensor.data_ptr()]
        for other in open_ended:
            if _share(other, tensor):
                return other, tensor
        open_ended.append(tensor)
    return None


def _has_memory(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.device.type == "cpu" and tensor.numel() > 0


def _end(tensor: Tensor) -> int:
    """The address behind the last element."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _share(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors share memory whose ranges of addresses overlap.

    Views such as two columns of one matrix lie between each other and share nothing.
    """
    if left.data_ptr() == right.data_ptr() or left.element_size() != right.element_size():
        return True
    return bool(np.isin(_addresses(left), _addresses(right)).any())


def _addresses(tensor: Tensor) -> npt.NDArray[np.int64]:
    """Where every element begins."""
    addresses = np.full(tuple(tensor.shape), tensor.data_ptr(), dtype=np.int64)
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        steps = np.arange(size, dtype=np.int64) * stride * tensor.element_size()
        addresses += steps.reshape(-1, *[1] * (tensor.ndim - axis - 1))
    return addresses.reshape(-1)
