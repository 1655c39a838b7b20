"""The device that torch computes on: the CPU, or a GPU that data are moved to once."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples

CPU = torch.device("cpu")


def find_device(name: str) -> torch.device:
    """The device of this name; one that torch does not find here is refused."""
    device = torch.device(name)
    missing = None
    if device.type == "cuda":
        missing = _missing_cuda(device.index or 0)
    elif device.type == "mps" and not torch.backends.mps.is_available():
        missing = "torch finds no GPU of Apple's here"
    if missing is not None:
        raise SettingError(f"device must be one that torch finds; given {name!r}: {missing}")
    return device


def _missing_cuda(index: int) -> str | None:
    if torch.version.cuda is None and torch.version.hip is None:
        return "this torch is built without CUDA"
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return None if index < found else f"torch finds {found} GPUs here"


def generator_of(device: torch.device) -> torch.Generator:
    """The global generator that random numbers on this device come from."""
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "mps":
        return torch.mps._get_default_mps_generator()
    torch.cuda.init()
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor's copy on a device, or itself if it is there already.

    Rows that overlap, such as windows of a text, still do: the copy is as small as the original.
    """
    if tensor.device == device or tensor.numel() == 0:
        return tensor.to(device)
    steps = zip(tensor.stride(), tensor.shape, strict=True)
    reach = 1 + sum(stride * (size - 1) for stride, size in steps)
    if reach >= tensor.numel():
        return tensor.to(device)
    memory = tensor.as_strided((reach,), (1,)).to(device)
    return memory.as_strided(tensor.shape, tensor.stride())


class OnDevice:
    """Examples on a device: each data set is moved once, and stays there as long as it is here.

    Data that are made on demand are moved again when they have been made again.
    """

    def __init__(
        self, device: torch.device, move: Callable[[Tensor, torch.device], Tensor] = moved
    ) -> None:
        self._device = device
        self._move = move
        self._copies: WeakKeyDictionary[TensorExamples, TensorExamples] = WeakKeyDictionary()

    def __call__(self, examples: TensorExamples) -> TensorExamples:
        """These examples, on the device."""
        if self._device == CPU:
            return examples
        if examples not in self._copies:
            x, y = self._move(examples.x, self._device), self._move(examples.y, self._device)
            self._copies[examples] = TensorExamples(x, y, examples.per_epoch)
        return self._copies[examples]
