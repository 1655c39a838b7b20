"""A run in MLflow."""

import os
from pathlib import Path

from asyncfeded.callbacks.tracker import Log, Tracker
from asyncfeded.runtime.saved import Saved


class MLflow(Tracker):
    """Write the settings and the curves of a run to MLflow.

        federate(model, datasets, callbacks=[MLflow("runs/mlflow")])
        federate(model, datasets, callbacks=[MLflow("http://localhost:5000", experiment="mine")])

    `uri` is a folder, whose file mlflow.db then holds any number of runs, or what MLflow calls a
    tracking URI: a server or a database. The run is named after its rule unless `run_name` is
    given; `run_id` is MLflow's name for it. It gets all metrics, every figure of the rule, and K of
    the first `clients` clients that send an update. The updates between two evaluations make one
    point, their mean. A step is a version of the model, and times are the run's own
    seconds. The status is FINISHED, also of a run that a callback stopped, KILLED after an
    interrupt, or FAILED.

    A folder's runs are shown by `mlflow ui --backend-store-uri sqlite:///runs/mlflow/mlflow.db`.
    Needs the extra `track`: `pip install 'asyncfeded[track]'`.
    """

    def __init__(
        self,
        uri: str | Path,
        experiment: str = "asyncfeded",
        run_name: str | None = None,
        clients: int = 50,
    ) -> None:
        super().__init__(clients, "mlflow", "sqlalchemy", "alembic")
        self._uri = uri
        self._experiment = experiment
        self._run_name = run_name
        self.run_id: str | None = None

    def _open(self, resumed: Saved | None) -> Log:
        # MLflow reports its use to its makers, unless it is told not to.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from asyncfeded.callbacks.mlflow_log import MLflowLog

        log = MLflowLog(self._uri, self._experiment, self._run_name, resumed)
        self.run_id = log.run_id
        return log
