from dataclasses import replace

import numpy as np
import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.on_demand import ClientNames
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.profiles import heterogeneous_devices, paper_devices

STEADY = DeviceModel({"a": Device(0.5, 5.0)}, jitter=0.0, transfer_spread=0.0)


def test_without_any_spread_a_round_is_plain_arithmetic() -> None:
    # 1,000 bytes at 500 bytes/s: 2 s each way; 6 epochs of 0.5 s: 3 s.
    time = replace(STEADY, bytes_per_second=500).round_time("a", 0, epochs=6, num_bytes=1000)
    assert (time.download, time.hangs, time.compute, time.upload) == (2.0, 0.0, 3.0, 2.0)
    assert time.total == 7.0


def test_a_part_of_a_round_does_not_depend_on_its_epochs() -> None:
    model = DeviceModel({"a": Device(0.5, 5.0, fixed_seconds=0.3)}, jitter=0.0)
    assert model.round_time("a", 0, epochs=1, num_bytes=0).total == 0.8
    assert model.round_time("a", 0, epochs=10, num_bytes=0).total == 5.3


def test_a_draw_depends_on_seed_client_and_round_alone() -> None:
    devices = {name: Device(0.5, 5.0) for name in ("a", "b")}
    model = DeviceModel(devices, suspension=0.5, bytes_per_second=1e3)
    time = model.round_time("a", 3, 10, 1000)
    model.round_time("b", 3, 10, 1000)
    assert model.round_time("a", 3, 10, 1000) == time
    assert model.round_time("a", 4, 10, 1000) != time
    assert model.round_time("b", 3, 10, 1000) != time
    assert replace(model, seed=1).round_time("a", 3, 10, 1000) != time


def test_suspension_changes_the_hangs_and_no_other_draw() -> None:
    model = DeviceModel({"a": Device(0.5, 5.0)}, bytes_per_second=1e3)
    for number in range(50):
        calm = model.round_time("a", number, 10, 1000)
        wild = replace(model, suspension=0.9).round_time("a", number, 10, 1000)
        assert (calm.download, calm.compute, calm.upload) == (
            wild.download,
            wild.compute,
            wild.upload,
        )


@pytest.mark.parametrize("suspension", [0.1, 0.5, 0.9])
def test_late_hangs_are_geometric_and_last_2_7_usual_rounds_each(suspension: float) -> None:
    model = replace(STEADY, suspension=suspension, hangs="delay")
    hangs = [model.round_time("a", number, 10, 0).hangs for number in range(4000)]
    # Mean extra time per round: P / (1 − P) · 2.7 rounds of 5 s; no hang with probability 1 − P.
    assert np.mean(hangs) == pytest.approx(suspension / (1 - suspension) * 2.7 * 5, rel=0.1)
    assert np.mean(np.array(hangs) == 0) == pytest.approx(1 - suspension, abs=0.03)


def test_a_transfer_is_never_negative_however_wild_its_coefficient() -> None:
    model = replace(STEADY, bytes_per_second=1.0, transfer_spread=3.0)
    times = [model.round_time("a", number, 1, 1) for number in range(200)]
    assert min(min(time.download, time.upload) for time in times) > 0.0
    assert max(time.download for time in times) > 3


def test_jitter_keeps_the_median() -> None:
    model = replace(STEADY, jitter=0.1)
    compute = [model.round_time("a", number, 10, 0).compute for number in range(2000)]
    assert np.median(compute) == pytest.approx(5.0, rel=0.01)
    assert np.std(np.log(compute)) == pytest.approx(0.1, rel=0.1)


def test_steps_divide_the_time_of_an_epoch() -> None:
    time = STEADY.for_steps({"a": 5}).round_time("a", 0, epochs=20, num_bytes=0)
    assert time.compute == pytest.approx(2.0)


def test_a_paper_profile_is_for_ten_clients() -> None:
    with pytest.raises(SettingError, match="describes 10 clients; given 3: use devices 'hetero"):
        paper_devices("paper-femnist", ["a", "b", "c"])


def test_heterogeneous_devices_have_log_normal_speeds_and_work_by_their_data() -> None:
    names = ClientNames(2000)
    devices = heterogeneous_devices(dict.fromkeys(names, 600), seed=0, speed_spread=0.5)
    epochs = np.array([device.seconds_per_epoch for device in devices.values()])
    assert np.median(epochs) == pytest.approx(0.1, rel=0.05)
    assert np.std(np.log(epochs)) == pytest.approx(0.5, rel=0.05)
    twice = heterogeneous_devices(dict.fromkeys(names[:5], 1200), seed=0, speed_spread=0.5)
    assert twice["client-3"].seconds_per_epoch == 2 * devices["client-3"].seconds_per_epoch


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("suspension", 1.0),
        ("suspension", -0.1),
        ("jitter", -1),
        ("bytes_per_second", 0),
        ("transfer_spread", -1),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(setting: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"^{setting} must be .*; given {value!r}$"):
        replace(STEADY, **{setting: value})  # type: ignore[arg-type]


def test_a_device_without_speed_and_a_client_without_a_device_are_refused() -> None:
    with pytest.raises(SettingError, match="seconds_per_epoch must be a finite number above 0"):
        Device(0.0, 1.0)
    with pytest.raises(SettingError, match="client 'z' has no device; known are a"):
        STEADY.round_time("z", 0, 1, 0)
