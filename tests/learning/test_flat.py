import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.flat import FlatModule


def test_parameters_and_buffers_are_views_into_one_vector() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    flat = FlatModule(module)
    # 6 weights + 2 biases + 2 + 2 of the norm are trained; 2 means, 2 variances and the 4 limbs of
    # the count are not.
    assert (flat.schema.trained, flat.schema.size) == (12, 20)
    flat.vector[:] = torch.arange(20.0)
    state = {name: value.tolist() for name, value in module.state_dict().items()}
    assert state["0.weight"] == [[0, 1, 2], [3, 4, 5]]
    assert (state["1.running_mean"], state["1.running_var"]) == ([12, 13], [14, 15])


def test_flattening_changes_no_value() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    FlatModule(module)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_integer_buffers_travel_by_copy() -> None:
    norm = nn.BatchNorm1d(2)
    flat = FlatModule(norm)
    parameters = flat.collect().copy()
    parameters[-4:] = 41, 1, 0, 0
    flat.load(parameters)
    assert norm.state_dict()["num_batches_tracked"].item() == 2**16 + 41
    norm(torch.randn(4, 2))
    assert flat.collect()[-4:].tolist() == [42, 1, 0, 0]


def test_frozen_parameters_come_after_the_trained_ones() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    module[0].requires_grad_(False)
    schema = FlatModule(module).schema
    assert schema.names == ("1.weight", "1.bias", "0.weight", "0.bias")
    assert (schema.trained, schema.size) == (3, 9)


def test_loading_read_only_parameters_leaves_them_alone() -> None:
    flat = FlatModule(nn.Linear(1, 1))
    parameters = np.array([1, 2], np.float32)
    parameters.flags.writeable = False
    flat.load(parameters)
    flat.vector += 1
    assert parameters.tolist() == [1, 2]


def test_modules_that_cannot_be_flattened_are_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"'weight' must be float32; given torch.float64"):
        FlatModule(nn.Linear(1, 1).double())
    with pytest.raises(SettingError, match="must have a parameter that requires a gradient"):
        FlatModule(nn.ReLU())


def test_a_parameter_that_is_not_finite_is_named() -> None:
    module = nn.Linear(1, 1)
    module.register_buffer("mask", torch.tensor([-torch.inf]))
    with pytest.raises(SettingError, match=r"'mask' must be finite.*persistent=False"):
        FlatModule(module)
