"""Runs in MLflow, as MLflow reads them back."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Metric, Run
from mlflow.tracking import MlflowClient

from asyncfeded import MLflow, StopAfter, rules
from asyncfeded.callbacks.figures import Figures, Point
from asyncfeded.callbacks.mlflow_log import MLflowLog
from asyncfeded.callbacks.tracker import Ending
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.runtime.events import Received
from command_line import asyncfeded_here as asyncfeded
from small_run import small_run


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of no runs: to make one takes MLflow seconds."""
    folder = tmp_path_factory.mktemp("mlflow") / "of a name with %20 and ?"
    MLflowLog(folder, "first", None)
    return folder


def client_of(folder: Path) -> MlflowClient:
    address = str(folder / "mlflow.db").replace("%", "%25").replace("?", "%3F")
    return MlflowClient(f"sqlite:///{address}")


def read(folder: Path, tracker: MLflow) -> Run:
    assert tracker.run_id is not None
    return client_of(folder).get_run(tracker.run_id)


def curve(folder: Path, tracker: MLflow, name: str) -> list[tuple[int, float]]:
    return [(metric.step, metric.value) for metric in history(folder, tracker, name)]


def history(folder: Path, tracker: MLflow, name: str) -> list[Metric]:
    assert tracker.run_id is not None
    found = client_of(folder).get_metric_history(tracker.run_id, name)
    return sorted(found, key=lambda metric: (metric.step, metric.timestamp))


class Drawn:
    """Keeps the points that are to be drawn."""

    def __init__(self) -> None:
        self._figures = Figures(50)
        self.points: list[Point] = []

    def __call__(self, event: Any, run: Any) -> None:
        self.points += self._figures.of(event)


def test_every_metric_and_every_figure_of_the_rule_is_there(store: Path) -> None:
    tracker, drawn = MLflow(store), Drawn()
    result = small_run(tracker, drawn, metrics={"half": lambda _outputs, _targets: 0.5})
    names = {name for point in drawn.points for name in point.values}
    assert {
        "test/half",
        "update/staleness",
        "update/learning_rate",
        "update_epochs/client-2",
    } <= names
    assert set(read(store, tracker).data.metrics) == names
    for name in names:
        expected = [(p.version, p.values[name]) for p in drawn.points if name in p.values]
        assert curve(store, tracker, name) == expected
    assert curve(store, tracker, "run/updates")[-1] == (result.versions, result.updates)


def test_times_are_the_run_s_own_seconds(store: Path) -> None:
    tracker = MLflow(store)
    result = small_run(tracker)
    times = [metric.timestamp for metric in history(store, tracker, "test/loss")]
    milliseconds = [round(1000 * point.seconds) for point in result.curve]
    assert [time - times[0] for time in times] == milliseconds


def test_a_run_has_its_settings_and_the_name_of_its_rule(store: Path) -> None:
    tracker = MLflow(store)
    small_run(tracker, rule=rules.fedbuff(buffer_size=3), seed=7)
    run = read(store, tracker)
    assert run.info.run_name == "fedbuff"
    assert run.data.params["buffer_size"] == "3"
    assert (run.data.params["rule"], run.data.params["seed"]) == ("fedbuff", "7")


def test_a_run_has_the_name_and_the_experiment_that_are_given(store: Path) -> None:
    tracker = MLflow(store, experiment="mine", run_name="third try")
    small_run(tracker)
    run = read(store, tracker)
    experiment = client_of(store).get_experiment(run.info.experiment_id)
    assert (run.info.run_name, experiment.name) == ("third try", "mine")
    assert experiment.artifact_location == (store / "artifacts").as_uri()
    small_run(tracker)
    assert len(client_of(store).search_runs([run.info.experiment_id])) == 2


def test_a_run_that_ends_as_planned_is_finished(store: Path) -> None:
    whole, stopped = MLflow(store), MLflow(store)
    small_run(whole)
    small_run(stopped, StopAfter(updates=5))
    assert read(store, whole).info.status == "FINISHED"
    assert read(store, whole).data.tags["ended"] == "finished"
    assert read(store, stopped).info.status == "FINISHED"
    assert read(store, stopped).data.tags["ended"] == "stopped: StopAfter(updates=5)"


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
    ("error", "status", "words"),
    [
        (ValueError("not that"), "FAILED", "failed: ValueError: not that"),
        (KeyboardInterrupt(), "KILLED", "interrupted: KeyboardInterrupt"),
    ],
)
def test_a_run_that_ends_early_leaves_all_until_then_and_what_ended_it(
    store: Path, error: BaseException, status: str, words: str
) -> None:
    tracker = MLflow(store)
    with pytest.raises(type(error)):
        small_run(tracker, RaiseAfter(5, error), evaluate_every=100.0, seconds=100.0)
    run = read(store, tracker)
    assert (run.info.status, run.data.tags["ended"]) == (status, words)
    assert curve(store, tracker, "run/updates") == [(6, 5)]


def test_many_points_are_written_in_few_calls(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    log_batch = MlflowClient.log_batch

    def counting(self: MlflowClient, run_id: str, **given: Any) -> Any:
        sizes.extend([len(given["metrics"])] if "metrics" in given else [])
        return log_batch(self, run_id, **given)

    monkeypatch.setattr(MlflowClient, "log_batch", counting)
    monkeypatch.setattr("asyncfeded.callbacks.mlflow_log.LONGEST_WAIT_SECONDS", 600.0)
    small_run(MLflow(store), evaluate_every=0.02)  # 201 evaluations of some ten figures
    assert sum(sizes) > 1000
    assert len(sizes) == -(-sum(sizes) // 1000) <= 3


def test_what_mlflow_refuses_in_a_name_is_replaced_without_a_clash(store: Path) -> None:
    log = MLflowLog(store, "names", None)
    log.write_settings("mine", {})
    log.write_figures(0.0, 1, {"epochs/a#b": 1.0, "epochs/a/b": 2.0, "epochs/..": 3.0})
    log.write_figures(1.0, 2, {"epochs/a#b": 4.0})
    log.write_end(Ending("finished"))
    found = client_of(store).get_run(log.run_id).data.metrics
    assert found == {"epochs/a_b": 4.0, "epochs/a_b 1": 2.0, "epochs/_": 3.0}


def test_a_loss_that_is_no_number_is_kept_as_such(store: Path) -> None:
    tracker = MLflow(store)
    small_run(tracker, metrics={"nan": lambda _outputs, _targets: float("nan")})
    values = [value for _, value in curve(store, tracker, "test/nan")]
    assert values
    assert all(value != value for value in values)


def test_tracking_changes_no_bit_of_the_log_and_no_setting_of_the_process(store: Path) -> None:
    before = dict(os.environ)
    assert small_run(MLflow(store)).log_sha256 == small_run().log_sha256
    assert {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"} == {
        **before,
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("a-file", "mlflow 'a-file' cannot be written: .*File exists"),
        ("no-store", "mlflow 'no-store' cannot be written: file is not a database"),
        ("http://127.0.0.1:9", "mlflow 'http://127.0.0.1:9' cannot be written: .*refused"),
        ("nonsense://here", "mlflow 'nonsense://here' cannot be written: .*nonsense"),
    ],
)
def test_a_store_that_cannot_be_opened_is_said_in_one_line(
    uri: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a-file").write_text("")
    Path("no-store").mkdir()
    Path("no-store/mlflow.db").write_text("neither tables nor rows, but words" * 100)
    with pytest.raises(FileError, match=message) as raised:
        small_run(MLflow(uri))
    assert "\n" not in str(raised.value)


def test_a_store_that_fails_does_not_hide_what_ended_the_run(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(MlflowClient, "set_terminated", full)
    with pytest.raises(FileError, match=r"mlflow '.*' cannot be written: no space left"):
        small_run(MLflow(store))
    with pytest.raises(ValueError, match="not that"):
        small_run(MLflow(store), RaiseAfter(1, ValueError("not that")))


@pytest.mark.parametrize("library", ["mlflow", "sqlalchemy", "alembic"])
def test_a_library_that_is_missing_is_named_with_what_to_install(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SettingError) as raised:
        MLflow("runs")
    assert str(raised.value) == (
        f"MLflow needs {library}, which is not installed: pip install 'asyncfeded[track]'"
    )


def test_the_command_line_writes_all_runs_of_a_comparison_into_one_store(
    store: Path, tmp_path: Path
) -> None:
    (tmp_path / "mlflow").mkdir()
    shutil.copy(store / "mlflow.db", tmp_path / "mlflow")
    pair = ("--rule", "fedavg", "--rule", "asyncfeded", "--seconds", "2", "--clients", "4")
    done = asyncfeded("compare", *pair, "--track", "mlflow", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"sqlite:///{tmp_path / 'mlflow' / 'mlflow.db'}" in done.stdout
    client = client_of(tmp_path / "mlflow")
    experiment = client.get_experiment_by_name("asyncfeded")
    assert experiment is not None
    runs = {
        run.info.run_name: run
        for run in client.search_runs([experiment.experiment_id])
        if run.data.params.get("clients") == "4"
    }
    assert set(runs) == {"fedavg seed-0", "asyncfeded seed-0"}
    assert runs["asyncfeded seed-0"].data.params["gamma_bar"] == "3.0"
    assert all(run.info.status == "FINISHED" for run in runs.values())
