"""What would never end, or not fit into memory, is refused with its limit."""

from pathlib import Path

import pytest
import torch
from torch import nn

from asyncfeded import ClientNames, OnDemand, federate
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.experiment.settings import read_config, run_settings
from asyncfeded.simulation.devices import Device, DeviceModel

EXAMPLES = (torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))
HUGE = "1" + 400 * "0"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"suspension": "0.9999999999"}, "suspension must be less than or equal to 0.999; given"),
        (
            {"seconds": 300, "evaluate_every": 1e-9},
            "evaluate_every must be at least 0.0003, for at most 1,000,000 evaluations in 300 sec",
        ),
        (
            {"clients": 100_000_000},
            "clients must be at most 100,000 where all are at work at once; given 100,000,000: giv",
        ),
        ({"initial_epochs": HUGE}, "initial_epochs must be below 10^19; given 401 digits"),
        ({"initial_epochs": 10**400}, "initial_epochs must be below 10^19; given 401 digits"),
        ({"seed": f"-{HUGE}"}, "seed must be below 10^19; given 401 digits"),
        ({"batch_size": 9 * HUGE * 13}, "batch_size must be below 10^19; given 46917 digits"),
    ],
)
def test_a_setting_without_end_is_refused_in_one_short_line(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingError) as caught:
        run_settings(values)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 300


def test_very_many_clients_may_take_turns() -> None:
    assert run_settings({"clients": 100_000_000, "at_work": 10}).clients == 100_000_000


def test_the_limits_hold_in_python_too() -> None:
    with pytest.raises(SettingError, match="evaluate_every must be at least 6e-05"):
        federate(nn.Linear(2, 2), [EXAMPLES], evaluate_every=1e-9)
    many = OnDemand(ClientNames(100_001), lambda name: EXAMPLES)
    with pytest.raises(SettingError, match="clients must be at most 100,000 where all are at"):
        federate(nn.Linear(2, 2), many, test=EXAMPLES)
    with pytest.raises(SettingError, match=r"suspension must be from 0 to 0.999; given 0.9999"):
        DeviceModel({"a": Device(1.0, 1.0)}, suspension=0.9999)


def test_a_deep_file_is_named_as_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + 5000 * "[" + 5000 * "]")
    with pytest.raises(FileError, match=r"deep.toml' is not TOML: too deeply nested"):
        read_config(path)
