"""Runs in TensorBoard, as TensorBoard reads them back."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import Status

from asyncfeded import StopAfter, TensorBoard, Virtual, guards, rules
from asyncfeded.callbacks.figures import Figures, Point
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.result import Result
from asyncfeded.runtime.events import Received
from command_line import asyncfeded_here as asyncfeded
from small_run import small_run


class Drawn:
    """Keeps the points that are to be drawn."""

    def __init__(self) -> None:
        self._figures = Figures(50)
        self.points: list[Point] = []

    def __call__(self, event: Any, run: Any) -> None:
        self.points += self._figures.of(event)


def read(folder: Path) -> EventAccumulator:
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def curve(log: EventAccumulator, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in log.Scalars(tag)]


def of_metric(result: Result, name: str) -> list[tuple[int, float]]:
    """What the curve of a metric must be: TensorBoard keeps numbers in single precision."""
    return [(point.version, float(np.float32(point.metrics[name]))) for point in result.curve]


def status(log: EventAccumulator) -> int:
    content = log.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.content
    return int(metadata.parse_session_end_info_plugin_data(content).status)


def ended(log: EventAccumulator) -> str:
    (record,) = log.Tensors("run/ended")
    return str(record.tensor_proto.string_val[0].decode())


def test_every_metric_is_there_over_the_versions_that_were_measured(tmp_path: Path) -> None:
    half = {"half": lambda _outputs, _targets: 0.5}
    result = small_run(TensorBoard(tmp_path), metrics=half)
    log = read(tmp_path)
    for name in ("accuracy", "loss", "half"):
        assert curve(log, f"test/{name}") == of_metric(result, name)
    seconds = [(point.version, point.seconds) for point in result.curve]
    assert curve(log, "run/seconds") == seconds


def test_every_figure_of_the_rule_is_there_as_it_was_drawn(tmp_path: Path) -> None:
    drawn = Drawn()
    small_run(TensorBoard(tmp_path), drawn)
    log = read(tmp_path)
    tags = {name for point in drawn.points for name in point.values}
    assert {
        "update/staleness",
        "update/learning_rate",
        "update/lag",
        "update_epochs/client-2",
    } <= tags
    assert set(log.Tags()["scalars"]) == tags
    for tag in tags:
        drawn_of_it = [(p.version, p.values[tag]) for p in drawn.points if tag in p.values]
        assert curve(log, tag) == [(step, float(np.float32(value))) for step, value in drawn_of_it]


def test_there_are_as_many_points_as_evaluations_and_not_as_updates(tmp_path: Path) -> None:
    result = small_run(TensorBoard(tmp_path), seconds=20.0, evaluate_every=5.0)
    assert result.updates > 100
    assert len(curve(read(tmp_path), "update/staleness")) == len(result.curve) - 1 == 4
    assert curve(read(tmp_path), "run/updates")[-1] == (result.versions, result.updates)


def test_relative_times_are_the_run_s_own_seconds(tmp_path: Path) -> None:
    result = small_run(TensorBoard(tmp_path))
    times = [event.wall_time for event in read(tmp_path).Scalars("test/loss")]
    assert [time - times[0] for time in times] == pytest.approx([p.seconds for p in result.curve])


def test_refused_updates_are_counted_by_their_reason(tmp_path: Path) -> None:
    result = small_run(TensorBoard(tmp_path), guards=[guards.bounded_staleness(1.0)])
    refused = result.refused["too_stale"]
    assert refused > 0
    assert curve(read(tmp_path), "refused/too_stale")[-1] == (result.versions, refused)


def test_lost_rounds_are_counted(tmp_path: Path) -> None:
    result = small_run(TensorBoard(tmp_path), world=Virtual(suspension=0.5))
    (reason,) = result.lost_rounds
    assert curve(read(tmp_path), f"lost_rounds/{reason}")[-1][1] == result.lost_rounds[reason]


def test_the_settings_are_those_of_the_result(tmp_path: Path) -> None:
    result = small_run(TensorBoard(tmp_path), rule=rules.fedbuff(buffer_size=3), seed=7)
    content = read(tmp_path).SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    found = metadata.parse_session_start_info_plugin_data(content).hparams
    assert result.settings["buffer_size"] == found["buffer_size"].number_value == 3
    assert (found["rule"].string_value, found["seed"].number_value) == ("fedbuff", 7)


def test_a_run_that_ends_as_planned_says_so(tmp_path: Path) -> None:
    small_run(TensorBoard(tmp_path))
    log = read(tmp_path)
    assert (status(log), ended(log)) == (Status.STATUS_SUCCESS, "finished")


def test_a_run_that_a_callback_stops_says_which(tmp_path: Path) -> None:
    small_run(TensorBoard(tmp_path), StopAfter(updates=5))
    log = read(tmp_path)
    assert (status(log), ended(log)) == (
        Status.STATUS_SUCCESS,
        "stopped: StopAfter(updates=5)",
    )
    assert curve(log, "run/updates")[-1] == (6, 5)


class RaiseAfter:
    """Raises once the server has answered some updates."""

    def __init__(self, updates: int, error: BaseException) -> None:
        self._left = updates
        self._error = error

    def __call__(self, event: Any, run: Any) -> None:
        if isinstance(event, Received):
            self._left -= 1
            if self._left == 0:
                raise self._error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("not that"), "failed: ValueError: not that"),
        (KeyboardInterrupt(), "interrupted: KeyboardInterrupt"),
    ],
)
def test_a_run_that_ends_early_leaves_all_until_then_and_what_ended_it(
    tmp_path: Path, error: BaseException, words: str
) -> None:
    with pytest.raises(type(error)):
        small_run(TensorBoard(tmp_path), RaiseAfter(5, error), evaluate_every=100.0, seconds=100.0)
    log = read(tmp_path)
    assert (status(log), ended(log)) == (Status.STATUS_FAILURE, words)
    assert curve(log, "run/updates") == [(6, 5)]


def test_a_loss_that_is_no_number_is_drawn_as_such(tmp_path: Path) -> None:
    small_run(TensorBoard(tmp_path), metrics={"nan": lambda _outputs, _targets: float("nan")})
    values = [value for _, value in curve(read(tmp_path), "test/nan")]
    assert values
    assert all(value != value for value in values)


def test_a_later_run_in_the_same_folder_takes_the_place_of_the_first(tmp_path: Path) -> None:
    tracker = TensorBoard(tmp_path)
    small_run(tracker)
    result = small_run(tracker, seed=1)
    assert len(list(tmp_path.iterdir())) == 2
    assert curve(read(tmp_path), "test/loss") == of_metric(result, "loss")


def test_tracking_changes_no_bit_of_the_log(tmp_path: Path) -> None:
    assert small_run(TensorBoard(tmp_path)).log_sha256 == small_run().log_sha256


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"tensorboard '.*/file' cannot be written: File exists"):
        small_run(TensorBoard(tmp_path / "file"))


def test_a_full_disk_does_not_hide_what_ended_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asyncfeded.callbacks.tensorboard_log import TensorBoardLog

    def full(*_: object, **__: object) -> None:
        raise FileError("no space left")

    monkeypatch.setattr(TensorBoardLog, "write_end", full)
    with pytest.raises(FileError, match="no space left"):
        small_run(TensorBoard(tmp_path))
    with pytest.raises(ValueError, match="not that"):
        small_run(TensorBoard(tmp_path), RaiseAfter(1, ValueError("not that")))


def test_a_library_that_is_missing_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(SettingError) as raised:
        TensorBoard(tmp_path)
    assert str(raised.value) == (
        "TensorBoard needs tensorboard, which is not installed: pip install 'asyncfeded[track]'"
    )


QUICK = ("--seconds", "2", "--clients", "4", "--evaluate-every", "1")


def test_the_command_line_writes_into_the_folder_of_the_run(tmp_path: Path) -> None:
    done = asyncfeded("run", *QUICK, "--track", "tensorboard", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"tensorboard --logdir {tmp_path / 'tensorboard'}" in done.stdout.splitlines()
    log = read(tmp_path / "tensorboard")
    assert len(curve(log, "test/accuracy")) == 3
    content = log.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    found = metadata.parse_session_start_info_plugin_data(content).hparams
    assert (found["clients"].number_value, found["gamma_bar"].number_value) == (4, 3)


def test_the_command_line_overwrites_the_curves_of_an_earlier_run_when_told_to(
    tmp_path: Path,
) -> None:
    first = ("run", *QUICK, "--track", "tensorboard", "--out", str(tmp_path))
    assert asyncfeded(*first).returncode == 0
    (before,) = (tmp_path / "tensorboard").iterdir()
    again = asyncfeded(*first)
    assert (again.returncode, before.exists()) == (2, True)
    done = asyncfeded(*first, "--rule", "fedavg", "--overwrite")
    assert (done.returncode, before.exists()) == (0, False)
    assert "update/staleness" not in read(tmp_path / "tensorboard").Tags()["scalars"]


def test_a_comparison_has_a_folder_of_curves_per_rule_and_seed(tmp_path: Path) -> None:
    pairs = ("--rule", "fedavg", "--rule", "asyncfeded", "--seed", "0", "--seed", "1")
    done = asyncfeded("compare", *QUICK, *pairs, "--track", "tensorboard", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    folders = sorted(
        str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("*tfevents*")
    )
    assert folders == [
        f"tensorboard/{rule}/seed-{seed}" for rule in ("asyncfeded", "fedavg") for seed in (0, 1)
    ]


def test_an_unknown_tracker_is_refused_by_name() -> None:
    done = asyncfeded("run", *QUICK, "--track", "wandb")
    assert done.returncode == 2
    assert "'wandb' is not one of 'tensorboard', 'mlflow'" in done.stderr
