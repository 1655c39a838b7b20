"""Arguments of the wrong kind are refused in one line that names them."""

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from asyncfeded import Virtual, federate, rules
from asyncfeded.core.errors import SettingError
from asyncfeded.front_door import INSTEAD
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.simulation.devices import Device, DeviceModel

X, Y = torch.zeros(8, 2), torch.zeros(8, dtype=torch.int64)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("training", {"learning_rate": 0.1}, "training must be a LocalTraining; given a dict"),
        ("training", LocalTraining, "training must be a LocalTraining; given the class"),
        ("test", {}, "test must be a data set, or at least one by client; given an empty mapping"),
        ("rule", "fedavg", r"rule must be a rule, such as asyncfeded\(\); given a str"),
        ("rule", rules.asyncfeded, r"rule must be a rule, such as asyncfeded\(\); given a funct"),
        ("model", nn.Linear, "model must be a torch module; given the class Linear"),
        ("datasets", torch.utils.data.TensorDataset(X, Y), "datasets must be a list or a mapping"),
        ("datasets", {0: (X, Y)}, "datasets must name clients by texts; given 0"),
        ("datasets", 3, "datasets must be a list or a mapping .*; given an int"),
        ("loss", nn.CrossEntropyLoss, "loss must be a function .*; given the class Cross"),
        ("loss", "mse", "loss must be a function .*; given a str"),
        ("metrics", True, "metrics must be a mapping from names to functions; given a bool"),
        ("metrics", {"loss": len}, "metrics must be named by texts other than loss, .*'loss'"),
        ("seconds", "60", "seconds must be a number; given '60'"),
        ("evaluate_every", None, "evaluate_every must be a number; given None"),
        ("seed", 0.5, "seed must be a whole number; given 0.5"),
        ("world", "ray", r"world must be a world, such as Virtual\(\) or Ray\(\); given a str"),
        ("world", Virtual, r"world must be a world, .*; given the class Virtual"),
        ("guards", 3.0, r"guards must be a list of guards, such as bounded_staleness\(4.0\)"),
        ("history", "sketch", "history must be a VersionHistory; given a str"),
        ("callbacks", 1, "callbacks must be a list of functions .*; given an int"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(name: str, value: Any, message: str) -> None:
    given: dict[str, Any] = {"model": nn.Linear(2, 2), "datasets": [(X, Y), (X, Y)], name: value}
    with pytest.raises(SettingError, match=f"^{message}") as raised:
        federate(given.pop("model"), given.pop("datasets"), **{"seconds": 0.1, **given})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("learning_rate", "0.1", "learning_rate must be a finite number above 0; given '0.1'"),
        ("batch_size", 2.5, "batch_size must be a whole number of at least 1; given 2.5"),
        ("momentum", None, "momentum must be a number of at least 0 and below 1; given None"),
        ("decay", "1", "decay must be a number above 0 and at most 1; given '1'"),
    ],
)
def test_training_settings_of_the_wrong_kind_are_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{message}$"):
        LocalTraining(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("optimizers", torch.optim.Adam, "optimizers must be a mapping .*; given the class Adam"),
        ("optimizers", {"client-0": 0.1}, "optimizers must be a mapping .*; given a dict"),
        ("kernel", "fast", "kernel must be 'torch' or 'compiled'; given 'fast'"),
    ],
)
def test_how_clients_train_is_named_too(name: str, value: Any, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{message}$"):
        LocalTraining(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("devices", {}, "devices must be a DeviceModel; given a dict"),
        ("memberships", ["client-0"], "memberships must be a list of Membership; given a list"),
        ("selection", "all", "selection must be a Selection; given a str"),
        ("suspension", "0.1", "suspension must be a number; given '0.1'"),
        ("workers", 1.5, "workers must be a whole number; given 1.5"),
        ("workers", True, "workers must be a whole number; given True"),
        ("workers", 0, "workers must be at least 1; given 0"),
    ],
)
def test_a_virtual_world_names_its_arguments(name: str, value: Any, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{message}$"):
        Virtual(**{name: value})


def test_suspension_belongs_to_the_devices_where_these_are_given() -> None:
    devices = DeviceModel({"a": Device(1.0, 1.0)})
    with pytest.raises(SettingError, match=r"^suspension must be 0 where devices are given"):
        Virtual(devices, suspension=0.1)


@pytest.mark.parametrize("name", INSTEAD)
def test_an_earlier_argument_says_what_to_write_now(name: str) -> None:
    given: Any = {name: 1}
    with pytest.raises(SettingError, match=f"^{name} is no argument of federate: write ") as raised:
        federate(nn.Linear(2, 2), [(X, Y), (X, Y)], **given)
    assert "\n" not in str(raised.value)


def test_no_earlier_argument_is_one_of_today() -> None:
    assert not set(INSTEAD) & set(inspect.signature(federate).parameters)
