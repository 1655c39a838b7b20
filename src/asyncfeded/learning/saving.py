"""A module's parameters as a file: safetensors, which holds numbers and no code."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from asyncfeded.core.errors import FileError

MODEL_FILE = "model.safetensors"


def save_module(module: nn.Module, folder: Path) -> None:
    """Write a module's state; an earlier file is there until the new one is complete."""
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    unfinished = folder / f".{MODEL_FILE}.unfinished"
    try:
        save_file(state, unfinished)
        unfinished.replace(folder / MODEL_FILE)
    except (OSError, SafetensorError) as error:
        raise FileError(f"{MODEL_FILE} cannot be written to {str(folder)!r}: {error}") from None
