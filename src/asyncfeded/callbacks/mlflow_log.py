"""A run as MLflow keeps it."""

import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy import URL

from asyncfeded.callbacks.tracker import Ending, Setting
from asyncfeded.core.errors import FileError
from asyncfeded.runtime.saved import Saved

FILE = "mlflow.db"
METRICS_AT_ONCE = 1000
"""The most that MLflow takes in a call …"""
PARAMETERS_AT_ONCE = 100
LONGEST_WAIT_SECONDS = 5.0
"""… and after how long fewer are written, for whoever looks while the run goes on."""
STATUS = {
    "finished": "FINISHED",
    "stopped": "FINISHED",
    "interrupted": "KILLED",
    "failed": "FAILED",
}
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"


class MLflowLog:
    """A new run; its figures are written many at a time, since a call takes milliseconds."""

    def __init__(
        self,
        uri: str | Path,
        experiment: str,
        run_name: str | None,
        resumed: Saved | None = None,
    ) -> None:
        self._uri = uri
        self._has_name = run_name is not None
        self.run_id: str
        self._began = time.time() if resumed is None else float(resumed["began"])
        self._written = time.monotonic()
        self._waiting: list[Metric] = []
        self._names: dict[str, str] = {} if resumed is None else dict(resumed["names"])
        with self._said_in_one_line(), _quick_to_give_up():
            address, artifacts = _in_folder(uri)
            self._client = MlflowClient(address)
            if resumed is not None:
                self.run_id = str(resumed["run_id"])
                self._client.update_run(self.run_id, status="RUNNING")
                return
            number = self._number_of(experiment, artifacts)
            self.run_id = self._client.create_run(
                number, round(1000 * self._began), run_name=run_name
            ).info.run_id

    def write_settings(self, rule: str, settings: Mapping[str, Setting]) -> None:
        """Say what the run is made with."""
        given = [Param(name, str(value)) for name, value in {**settings, "rule": rule}.items()]
        with self._said_in_one_line():
            if not self._has_name:
                self._client.update_run(self.run_id, name=rule)
            while given:
                self._client.log_batch(self.run_id, params=given[:PARAMETERS_AT_ONCE])
                del given[:PARAMETERS_AT_ONCE]

    def write_figures(self, seconds: float, version: int, figures: Mapping[str, float]) -> None:
        """Add a point to the curve of each figure."""
        at = round(1000 * (self._began + seconds))
        for name, value in figures.items():
            self._waiting.append(Metric(self._allowed(name), value, at, version))
        waited_long = time.monotonic() - self._written > LONGEST_WAIT_SECONDS
        self._write(at_least=1 if waited_long else METRICS_AT_ONCE)

    def write_end(self, ending: Ending) -> None:
        """Say how the run has ended."""
        self._write()
        with self._said_in_one_line():
            tags = [RunTag("ended", str(ending))]
            self._client.log_batch(self.run_id, tags=tags)
            self._client.set_terminated(self.run_id, STATUS[ending.how])

    def state(self) -> Saved:
        """Which of MLflow's runs this is; points that are written twice count once there."""
        self._write()
        return {"run_id": self.run_id, "began": self._began, "names": dict(self._names)}

    def close(self) -> None:
        """Nothing is left open: MLflow keeps its connection for the next run."""

    def _write(self, at_least: int = 1) -> None:
        """Write what waits, as many at once as MLflow takes, unless there are fewer."""
        with self._said_in_one_line():
            while len(self._waiting) >= at_least:
                self._client.log_batch(self.run_id, metrics=self._waiting[:METRICS_AT_ONCE])
                del self._waiting[:METRICS_AT_ONCE]
                self._written = time.monotonic()

    def _number_of(self, experiment: str, artifacts: str | None) -> str:
        """The number of the experiment of this name, which is made if there is none."""
        found = self._client.get_experiment_by_name(experiment)
        if found is None:
            try:
                return str(self._client.create_experiment(experiment, artifacts))
            except MlflowException:  # another run may have made it meanwhile
                found = self._client.get_experiment_by_name(experiment)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _allowed(self, name: str) -> str:
        """A name in the letters that MLflow takes, the same for no two figures."""
        if name not in self._names:
            group, _, own = name.partition("/")
            allowed = f"{group}/" + re.sub(r"[^\w.\- :]|^\.+$", "_", own)[:200]
            if allowed in self._names.values():
                allowed += f" {len(self._names)}"
            self._names[name] = allowed
        return self._names[name]

    @contextmanager
    def _said_in_one_line(self) -> Iterator[None]:
        """Turn any error of MLflow's into one line that names the store."""
        try:
            yield
        except Exception as error:
            what = " ".join(str(error).split())
            raise FileError(f"mlflow {str(self._uri)!r} cannot be written: {what}") from error


def _in_folder(uri: str | Path) -> tuple[str, str | None]:
    """The address of a store and of its artifacts; a folder's store is a file of SQLite's."""
    if isinstance(uri, str) and "://" in uri:
        return uri, None
    folder = Path(uri).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    # MLflow tries for minutes to open what is no store, or cannot be written.
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("BEGIN IMMEDIATE")
    address = URL.create("sqlite", database=str(folder / FILE)).render_as_string()
    return address, (folder / "artifacts").as_uri()


@contextmanager
def _quick_to_give_up() -> Iterator[None]:
    """Try once again where no server answers, and do not tell of every step.

    MLflow itself tries for four minutes: too long where an address is mistyped.
    """
    steps = logging.getLogger("mlflow.store.db.utils")
    level = steps.level
    steps.setLevel(logging.WARNING)
    given = os.environ.get(RETRIES)
    os.environ[RETRIES] = "1" if given is None else given
    try:
        yield
    finally:
        steps.setLevel(level)
        if given is None:
            del os.environ[RETRIES]
