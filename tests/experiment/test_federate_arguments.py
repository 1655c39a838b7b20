"""Arguments of the wrong kind are refused in one line that names them."""

from typing import Any

import pytest
import torch
from torch import nn

from asyncfeded import federate, rules
from asyncfeded.core.errors import SettingError
from asyncfeded.learning.rounds import LocalTraining

X, Y = torch.zeros(8, 2), torch.zeros(8, dtype=torch.int64)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("training", {"learning_rate": 0.1}, "training must be a LocalTraining; given a dict"),
        ("training", LocalTraining, "training must be a LocalTraining; given the class"),
        ("optimizers", torch.optim.Adam, "optimizers must be a mapping .*; given the class Adam"),
        ("optimizers", {"client-0": 0.1}, "optimizers must be a mapping .*; given a dict"),
        ("test", {}, "test must be a data set, or at least one by client; given an empty mapping"),
        ("rule", "fedavg", r"rule must be a rule, such as asyncfeded\(\); given a str"),
        ("rule", rules.asyncfeded, r"rule must be a rule, such as asyncfeded\(\); given a funct"),
        ("module", nn.Linear, "module must be a torch module; given the class Linear"),
        ("datasets", torch.utils.data.TensorDataset(X, Y), "datasets must be a list or a mapping"),
        ("datasets", {0: (X, Y)}, "datasets must name clients by texts; given 0"),
        ("datasets", 3, "datasets must be a list or a mapping .*; given an int"),
        ("loss", nn.CrossEntropyLoss, "loss must be a function .*; given the class Cross"),
        ("loss", "mse", "loss must be a function .*; given a str"),
        ("metrics", True, "metrics must be a mapping from names to functions; given a bool"),
        ("metrics", {"loss": len}, "metrics must be named by texts other than loss, .*'loss'"),
        ("devices", {}, "devices must be a DeviceModel; given a dict"),
        ("memberships", ["client-0"], "memberships must be a list of Membership; given a list"),
        ("selection", "all", "selection must be a Selection; given a str"),
        ("seconds", "60", "seconds must be a number; given '60'"),
        ("suspension", "0.1", "suspension must be a number; given '0.1'"),
        ("evaluate_every", None, "evaluate_every must be a number; given None"),
        ("max_staleness", "3", "max_staleness must be a number; given '3'"),
        ("seed", 0.5, "seed must be a whole number; given 0.5"),
        ("workers", 1.5, "workers must be a whole number; given 1.5"),
        ("workers", True, "workers must be a whole number; given True"),
        ("callbacks", 1, "callbacks must be a list of functions .*; given an int"),
        ("kernel", "fast", "kernel must be 'torch' or 'compiled'; given 'fast'"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(name: str, value: Any, message: str) -> None:
    given: dict[str, Any] = {"module": nn.Linear(2, 2), "datasets": [(X, Y), (X, Y)], name: value}
    with pytest.raises(SettingError, match=f"^{message}") as raised:
        federate(given.pop("module"), given.pop("datasets"), **{"seconds": 0.1, **given})
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
