"""The data sets a user has, and where more come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncfeded.core.errors import AsyncFedEDError, FileError, SettingError
from asyncfeded.data import femnist, hub, roles
from asyncfeded.data.role_files import load_roles
from asyncfeded.tasks.folders import data_folder, dataset_folder
from asyncfeded.tasks.registry import NAMED_TASKS

NAMES = tuple(hub.REPOSITORIES)

Sizes = Callable[[Path], Mapping[str, int]]


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
    found = [_femnist_entry(data_dir), _shakespeare_entry(data_dir)]
    standins = [name for name in NAMED_TASKS if name not in NAMES]
    generated = [("synthetic-α-β", 10), *((name, _classes(name)) for name in standins)]
    return [
        *found,
        *(Entry(name, "generated when it is used", c, "any number") for name, c in generated),
    ]


def fetch(name: str, data_dir: Path | None, progress: hub.Progress) -> Entry:
    """Download a data set, and say what it holds."""
    if name not in hub.REPOSITORIES:
        raise SettingError(f"data set must be {' or '.join(NAMES)}; given {name!r}")
    hub.fetch(name, data_folder(data_dir) / name, progress)
    return _femnist_entry(data_dir) if name == "femnist" else _shakespeare_entry(data_dir)


def _femnist_entry(data_dir: Path | None) -> Entry:
    return _entry("femnist", data_dir, lambda folder: femnist.load_writers(folder).sizes)


def _shakespeare_entry(data_dir: Path | None) -> Entry:
    return _entry("shakespeare", data_dir, lambda folder: load_roles(folder).sizes)


def _entry(name: str, data_dir: Path | None, sizes: Sizes) -> Entry:
    try:
        folder = dataset_folder(name, data_dir)
    except FileError:
        where = f"not in {data_folder(data_dir)}: asyncfeded data fetch {name}"
        return Entry(name, where, _classes(name))
    try:
        found = sizes(folder)
    except AsyncFedEDError as error:
        return Entry(name, f"damaged: {error}", _classes(name))
    clients, examples = f"{len(found):,}", f"{sum(found.values()):,}"
    return Entry(name, str(folder), _classes(name), clients, examples)


def _classes(name: str) -> int:
    return femnist.CLASSES if name.startswith("femnist") else roles.CLASSES
