"""A run in TensorBoard."""

from pathlib import Path

from asyncfeded.callbacks.tracker import Log, Tracker
from asyncfeded.runtime.saved import Saved


class TensorBoard(Tracker):
    """Write the curves of a run to a folder that TensorBoard reads.

        federate(model, datasets, callbacks=[TensorBoard("runs/tensorboard/first")])

    Look at them with `tensorboard --logdir runs/tensorboard`, also while the run goes on. It
    shows all metrics, every figure of the rule, and K of the first `clients` clients that send an
    update. The updates between two evaluations make one point, their mean. A step is a version
    of the model, and the axis "Relative" has the run's own seconds. The page "HParams" has the
    run's settings, the page "Text" how it ended. Give every run a folder of its own.

    Needs the extra `track`: `pip install 'asyncfeded[track]'`.
    """

    def __init__(self, folder: str | Path, clients: int = 50) -> None:
        super().__init__(clients, "tensorboard")
        self._folder = Path(folder)

    def _open(self, resumed: Saved | None) -> Log:
        from asyncfeded.callbacks.tensorboard_log import TensorBoardLog

        return TensorBoardLog(self._folder, resumed)
