"""A module's parameters as a file: safetensors, which holds numbers and no code."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from asyncfeded.core.errors import FileError
from asyncfeded.files import whole_file
from asyncfeded.tensors import read_file

MODEL_FILE = "model.safetensors"


def save_module(module: nn.Module, path: Path) -> None:
    """Write a module's state; an earlier file stays until the new file is complete."""
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    try:
        with whole_file(path) as unfinished:
            save_file(state, unfinished)
    except SafetensorError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error}") from None


def load_model(module: nn.Module, path: str | Path) -> None:
    """Give a module the parameters in a file: `model.safetensors` of a run, or `KeepBest`'s.

    The file must be of the same model: every name, shape and type is compared before the module
    is changed.
    """
    state = module.state_dict()
    try:
        arrays = read_file(Path(path), state)
    except ValueError as error:
        raise FileError(f"model {str(path)!r} cannot be read: {error}") from None
    read = {name: torch.from_numpy(array) for name, array in arrays.items()}
    for name, tensor in read.items():
        has, needs = _described(tensor), _described(state[name])
        if has != needs:
            raise FileError(
                f"model {str(path)!r} is of another module: its {name} is {has}; this module's "
                f"is {needs}"
            )
    module.load_state_dict(read)


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
