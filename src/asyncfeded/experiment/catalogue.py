"""The data sets a user has, and where more come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncfeded.core.errors import AsyncFedEDError, FileError, SettingError
from asyncfeded.data import femnist, hub, published_synthetic, roles
from asyncfeded.data.role_files import load_roles
from asyncfeded.tasks.folders import data_folder, dataset_folder

Sizes = Callable[[Path], Mapping[str, int]]

IN_FOLDERS: Mapping[str, tuple[int, Sizes]] = {
    "femnist": (femnist.CLASSES, lambda folder: femnist.load_writers(folder).sizes),
    "shakespeare": (roles.CLASSES, lambda folder: load_roles(folder).sizes),
}
"""Data sets that lie in a folder: the number of classes, and how to read the clients' sizes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A data set, with what is known of it."""

    name: str
    where: str
    classes: int
    clients: str = "–"
    examples: str = "–"


def entries(data_dir: Path | None) -> list[Entry]:
    """All data sets: those in the folder, and those that are generated."""
    generated = {"synthetic-α-β": published_synthetic.CLASSES}
    generated |= {f"{name}-standin": classes for name, (classes, _) in IN_FOLDERS.items()}
    return [
        *(_entry(name, data_dir) for name in IN_FOLDERS),
        *(Entry(n, "generated when it is used", c, "any number") for n, c in generated.items()),
    ]


def fetch(name: str, data_dir: Path | None, progress: hub.OnProgress) -> Entry:
    """Download a data set, and say what it holds."""
    if name not in IN_FOLDERS:
        raise SettingError(f"data set must be {' or '.join(IN_FOLDERS)}; given {name!r}")
    hub.fetch(name, data_folder(data_dir) / name, progress)
    return _entry(name, data_dir)


def _entry(name: str, data_dir: Path | None) -> Entry:
    classes, sizes = IN_FOLDERS[name]
    try:
        folder = dataset_folder(name, data_dir)
    except FileError:
        where = f"not in {data_folder(data_dir)}: asyncfeded data fetch {name}"
        return Entry(name, where, classes)
    try:
        found = sizes(folder)
    except AsyncFedEDError as error:
        return Entry(name, f"damaged: {error}", classes)
    clients, examples = f"{len(found):,}", f"{sum(found.values()):,}"
    return Entry(name, str(folder), classes, clients, examples)
