"""Data sets from the Hugging Face hub, where Flower Labs keep copies of LEAF's.

The hub's library, `datasets`, downloads them, shows the progress and checks the files. It is an
optional part of this package (the extra "hub"). The result is one compact file.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from asyncfeded.core.errors import FileError
from asyncfeded.data import femnist, role_files
from asyncfeded.data.femnist import Writer, Writers, split_writer
from asyncfeded.data.role_files import OUT_OF_ORDER, role_from_windows
from asyncfeded.data.roles import WINDOW, Role, Roles

REPOSITORIES = {"femnist": "flwrlabs/femnist", "shakespeare": "flwrlabs/shakespeare"}
COLUMNS = {
    "femnist": ("image", "writer_id", "character"),
    "shakespeare": ("character_id", "x", "y"),
}
BATCH = 1000

OnProgress = Callable[[int, int], None]
"""Called with the number of rows read so far, and of all rows."""
Row = Mapping[str, Any]


def fetch(name: str, folder: Path, progress: OnProgress, source: str | None = None) -> Path:
    """Download a data set into a folder of its own, and return its file.

    `source` is another repository, or a local folder, with the same columns.
    """
    source = REPOSITORIES[name] if source is None else source
    _check_writable(folder)
    rows, count = _open(name, source, folder)
    rows = _counted(rows, count, progress)
    if name == "femnist":
        path = folder / femnist.FETCHED
        Writers.gather(_writers(rows, source)).write(path, source)
    else:
        path = folder / role_files.FETCHED
        Roles.gather(_roles(rows, source)).write(path, source)
    return path


def _check_writable(folder: Path) -> None:
    """Refuse, before a long download, a folder that cannot be written."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise FileError(f"{str(folder)!r} cannot be written: choose another --data-dir")


def _open(name: str, source: str, folder: Path) -> tuple[Iterable[Row], int]:
    """The rows of a data set of the hub, downloaded and checked by its library."""
    try:
        import datasets
    except ImportError:
        raise FileError(
            f"fetching {name} needs the library 'datasets': install this package with its extra "
            "'hub', as in pip install -c constraints.txt '.[hub]'"
        ) from None
    try:
        found = datasets.load_dataset(source, split="train")
    except Exception as error:  # the library passes on errors of a dozen other libraries
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise FileError(
            f"{name} cannot be fetched from {source} ({reason}): without network, put LEAF's json "
            f"(train/ and test/) into {str(folder)!r}, or use --task {name}-standin, which needs "
            "no data"
        ) from error
    missing = [column for column in COLUMNS[name] if column not in found.column_names]
    if missing:
        raise FileError(
            f"{source} must have the columns {', '.join(COLUMNS[name])}; it lacks "
            f"{', '.join(missing)}"
        )
    if len(found) == 0:
        raise FileError(f"{source} must have rows; it has none")
    return found.select_columns(list(COLUMNS[name])), len(found)


def _counted(rows: Iterable[Row], count: int, progress: OnProgress) -> Iterator[Row]:
    for index, row in enumerate(rows):
        if index % BATCH == 0:
            progress(index, count)
        yield row
    progress(count, count)


def _writers(rows: Iterable[Row], source: str) -> Iterator[Writer]:
    from PIL.Image import Image  # to list what can be fetched needs no pictures

    images: dict[str, list[femnist.Pixels]] = {}
    labels: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        where = f"{source}, row {index}, writer {row['writer_id']!r}"
        image, label = row["image"], row["character"]
        if not isinstance(row["writer_id"], str):
            raise FileError(f"{where}: a writer must have a name")
        if not isinstance(image, Image) or image.size != (femnist.SIDE, femnist.SIDE):
            raise FileError(f"{where}: an image must be 28 × 28 pixels; given {image!r}")
        if not isinstance(label, int) or not 0 <= label < femnist.CLASSES:
            raise FileError(
                f"{where}: a label must be from 0 to {femnist.CLASSES - 1}; given {label!r}"
            )
        pixels = np.asarray(image.convert("L"), dtype=np.uint8)
        images.setdefault(row["writer_id"], []).append(pixels)
        labels.setdefault(row["writer_id"], []).append(label)
    for name, pixels_of in images.items():
        yield split_writer(name, np.stack(pixels_of), np.array(labels[name], dtype=np.int64))


def _roles(rows: Iterable[Row], source: str) -> Iterator[Role]:
    parts: dict[str, list[Role]] = {}
    for name, group in groupby(_windows(rows, source), key=lambda window: window[0]):
        part = role_from_windows(name, ((text, following) for _, text, following in group))
        parts.setdefault(name, []).append(part)
    for name, of_role in parts.items():
        if sum(len(part.stretches) for part in of_role) > 1:
            raise FileError(f"{source}, role {name!r}: {OUT_OF_ORDER}")
        yield from of_role


def _windows(rows: Iterable[Row], source: str) -> Iterator[tuple[str, str, str]]:
    for index, row in enumerate(rows):
        name, text, following = row["character_id"], row["x"], row["y"]
        if not isinstance(name, str):
            raise FileError(f"{source}, row {index}: a role must have a name; given {name!r}")
        fits = isinstance(text, str) and isinstance(following, str)
        if not fits or len(text) != WINDOW or len(following) != 1:
            raise FileError(
                f"{source}, row {index}, role {name!r}: x must be {WINDOW} characters "
                f"and y one; given {text!r} and {following!r}"
            )
        yield name, text, following
