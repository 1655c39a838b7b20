"""How many examples of each class each client has, in a task or in a file that is dealt out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data import partition
from asyncfeded.data.columns import read_column
from asyncfeded.data.federated import FederatedData
from asyncfeded.data.partition import Scheme
from asyncfeded.report import plots

LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class Shares:
    """How many examples of each class each client has."""

    title: str
    classes: list[str]
    counts: Mapping[str, npt.NDArray[np.int64]]

    def plot(self, path: Path) -> None:
        """Draw the shares to an image file."""
        plots.class_distribution(
            path, list(self.counts), self.classes, np.array(list(self.counts.values())), self.title
        )


def shares_of(data: FederatedData, title: str) -> Shares:
    """The shares of a task's clients: all that they train on, capped or not."""
    labels = [examples.y for examples in data.train.values()]
    counts = [np.bincount(own, minlength=data.num_classes) for own in labels]
    title += ", training examples"
    if any(examples.per_epoch is not None for examples in data.train.values()):
        title += " (a pass visits a part)"
    return Shares(title, list(data.class_names), dict(zip(_shown_names(data), counts, strict=True)))


def draw_samples(path: Path, data: FederatedData, title: str, per_client: int = 20) -> None:
    """Draw some images of every client, sorted by class and spread over the classes."""
    rows = []
    for examples in data.train.values():
        if examples.x.ndim != 3:
            raise SettingError(f"samples are drawn of images; {data.name!r} has none")
        order = np.argsort(examples.y, kind="stable")
        places = np.linspace(0, len(order) - 1, min(per_client, len(order))).astype(np.int64)
        rows.append(examples.x[order[places]])
    plots.image_rows(path, _shown_names(data), rows, title)


@dataclass(frozen=True, slots=True)
class Dealing:
    """How a labelled set of the user's is dealt out to clients."""

    scheme: Scheme = "iid"
    clients: int = 10
    seed: int = 0
    alpha: float = 0.5
    shards_per_client: int = 2
    labels: str = "y"
    column: str | None = None


def shares_of_file(path: Path, dealing: Dealing) -> Shares:
    """Deal out the labels in an .npz or .csv file."""
    values = read_column(path, dealing.labels, "labels")
    classes, labels = np.unique(values, return_inverse=True)
    match dealing.scheme:
        case "iid":
            parts = partition.iid(labels, dealing.clients, dealing.seed)
        case "dirichlet":
            parts = partition.dirichlet(labels, dealing.clients, dealing.alpha, dealing.seed)
        case "shards":
            parts = partition.shards(
                labels, dealing.clients, dealing.shards_per_client, dealing.seed
            )
        case "column":
            if dealing.column is None:
                raise SettingError("column must name the column with the client of each example")
            column = read_column(path, dealing.column, "column")
            if len(column) != len(values):
                raise FileError(
                    f"{str(path)!r}: {dealing.column!r} must have as many values as "
                    f"{dealing.labels!r}, {len(values)}; has {len(column)}"
                )
            parts = partition.by_column(column)
    counts = partition.class_counts(labels, parts, len(classes))
    names = [str(value) for value in classes]
    title = f"{path.name}, {dealing.scheme}"
    if dealing.scheme == "dirichlet":
        title += f" (α = {dealing.alpha:g})"
    return Shares(title, names, dict(zip(parts, counts, strict=True)))


def _shown_names(data: FederatedData) -> list[str]:
    """The clients, with whose data they have; a long name is cut at its beginning."""
    shown = {
        n: s if len(s) <= LONGEST_NAME else f"…{s[-LONGEST_NAME:]}" for n, s in data.sources.items()
    }
    return [f"{name} ({shown[name]})" if name in shown else name for name in data.train]
