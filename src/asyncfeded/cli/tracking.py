"""`--track`: a run in TensorBoard or MLflow, in a folder inside that of its results."""

from collections.abc import Sequence
from pathlib import Path

import click

from asyncfeded.runtime.control import Callback

FILE = "mlflow.db"
TENSORBOARD, MLFLOW = "tensorboard", "mlflow"

track_option = click.option(
    "--track",
    multiple=True,
    type=click.Choice([TENSORBOARD, MLFLOW]),
    help="write curves and figures for this tool too, into OUT/tensorboard or OUT/mlflow; "
    "may be repeated",
)


def trackers(track: Sequence[str], folder: Path, name: str, *inside: str) -> list[Callback]:
    """What tracks a run; the folder of TensorBoard's curves is deeper where runs share one."""
    from asyncfeded.callbacks import MLflow, TensorBoard

    made: list[Callback] = []
    if TENSORBOARD in track:
        made.append(TensorBoard(folder.joinpath(TENSORBOARD, *inside)))
    if MLFLOW in track:
        made.append(MLflow(folder / MLFLOW, run_name=name))
    return made


def where_to_look(track: Sequence[str], folder: Path) -> list[str]:
    """How to look at what is tracked, a line for each tool; and what takes seconds first."""
    store = folder / MLFLOW / FILE
    lines = {
        TENSORBOARD: [f"tensorboard --logdir {folder / TENSORBOARD}"],
        MLFLOW: [f"mlflow ui --backend-store-uri sqlite:///{store}"],
    }
    if not store.exists():
        lines[MLFLOW].append("making a new store of MLflow's, which takes some seconds …")
    return [line for name, of_tool in lines.items() if name in track for line in of_tool]


def tracked_files(track: Sequence[str], folder: Path) -> list[str]:
    """The files of an earlier run that a new one must not be mixed with, as names in the folder.

    MLflow is made for many runs in one place, so nothing of its is in the way.
    """
    if TENSORBOARD not in track:
        return []
    curves = (folder / TENSORBOARD).rglob("events.out.tfevents.*")
    return sorted(str(path.relative_to(folder)) for path in curves)
