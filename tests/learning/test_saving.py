"""A model's file goes back into the same model, and into no other."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch import nn

from asyncfeded import FileError, load_model
from asyncfeded.learning.saving import save_module


def module(width: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))


def test_a_model_comes_back_with_every_bit(tmp_path: Path) -> None:
    saved, loaded = module(), module()
    save_module(saved, tmp_path / "m")
    load_model(loaded, tmp_path / "m")
    for name, tensor in saved.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name


def test_a_model_of_another_shape_is_refused_by_name_and_changes_nothing(tmp_path: Path) -> None:
    save_module(module(4), tmp_path / "m")
    given = module()
    before = {name: tensor.clone() for name, tensor in given.state_dict().items()}
    with pytest.raises(
        FileError,
        match=r"of another module: its 0.bias is float32 of shape \(4,\); this module's is "
        r"float32 of shape \(3,\)",
    ):
        load_model(given, tmp_path / "m")
    for name, tensor in given.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_a_model_with_other_names_or_types_is_refused(tmp_path: Path) -> None:
    save_module(nn.Linear(2, 3), tmp_path / "m")
    with pytest.raises(FileError, match=r"it must hold 0.bias, .*; it holds bias, weight"):
        load_model(module(), tmp_path / "m")
    save_file({"bias": np.zeros(3), "weight": np.zeros((3, 2))}, tmp_path / "m")
    with pytest.raises(FileError, match=r"its bias is float64 of shape \(3,\)"):
        load_model(nn.Linear(2, 3), tmp_path / "m")


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}", b"\xff" * 100])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(FileError, match=r"model .*m' cannot be read: no safetensors|it must hold"):
        load_model(module(), tmp_path / "m")
    with pytest.raises(FileError, match=r"none' cannot be read: .*No such file"):
        load_model(module(), tmp_path / "none")
