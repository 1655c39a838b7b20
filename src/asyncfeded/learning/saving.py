"""A module's parameters as a file: safetensors, which holds numbers and no code."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from asyncfeded.core.errors import FileError
from asyncfeded.files import whole_file

MODEL_FILE = "model.safetensors"


def save_module(module: nn.Module, path: Path) -> None:
    """Write a module's state; an earlier file stays until the new file is complete."""
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    try:
        with whole_file(path) as unfinished:
            save_file(state, unfinished)
    except SafetensorError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error}") from None
