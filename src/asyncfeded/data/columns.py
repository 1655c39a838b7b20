"""One column of a user's labelled set: an array of an .npz file, a column of a .csv file."""

import csv
import lzma
import struct
import zlib
from io import StringIO
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import AsyncFedEDError, FileError, SettingError
from asyncfeded.npy import read_header
from asyncfeded.reading import read_text

KINDS = (".npz", ".csv")
MOST_BYTES = 2**31
"""More than a column of any set that fits into memory."""
MOST_CSV_BYTES = 2**28
MOST_SHOWN = 300
UNREADABLE = (
    *(ValueError, TypeError, KeyError, SyntaxError, EOFError, RuntimeError, MemoryError),
    *(BadZipFile, zlib.error, lzma.LZMAError, struct.error, csv.Error, TokenError),
)
"""The errors that the readers of zip, NumPy and csv files raise."""

Column = npt.NDArray[Any]


def read_column(path: Path, name: str, setting: str) -> Column:
    """Read the column of this name; errors call the name `setting`."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise FileError(f"{str(path)!r} must be an .npz file, or a .csv file with a header")
    try:
        return (_from_npz if kind == ".npz" else _from_csv)(path, name, setting)
    except AsyncFedEDError:
        raise
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise FileError(f"{str(path)!r} cannot be read: {reason}") from None


def _from_npz(path: Path, name: str, setting: str) -> Column:
    with ZipFile(path) as archive:
        arrays = [entry.removesuffix(".npy") for entry in archive.namelist()]
        _check_name(path, name, setting, arrays)
        entry = archive.getinfo(f"{name}.npy")
        if entry.file_size > MOST_BYTES:
            raise FileError(
                f"{str(path)!r}: the array {name!r} must have at most {MOST_BYTES:,} bytes; has "
                f"{entry.file_size:,}"
            )
        with archive.open(entry) as file:
            try:
                header = read_header(file)
                # Header and entry may lie: take no more memory than there are bytes.
                content = file.read(header.size) if header.size <= entry.file_size else b""
                column: Column = np.frombuffer(content, header.dtype).reshape(header.shape)
            except ValueError:
                raise FileError(
                    f"{str(path)!r}: the array {name!r} is damaged, or not plain numbers"
                ) from None
    if column.ndim != 1:
        raise FileError(
            f"{str(path)!r}: {setting} {name!r} must have one value per example; has the shape "
            f"{column.shape}"
        )
    return column


def _from_csv(path: Path, name: str, setting: str) -> Column:
    """Whole numbers where all of them are; texts otherwise."""
    text = read_text(path, MOST_CSV_BYTES).removeprefix("\ufeff")
    rows = csv.reader(StringIO(text, newline=""))
    header = next(rows, [])
    _check_name(path, name, setting, header)
    place = header.index(name)
    values = []
    for row in rows:
        if row and len(row) != len(header):
            raise FileError(
                f"{str(path)!r}, line {rows.line_num}: must have {len(header)} columns, as "
                f"the header has; has {len(row)}"
            )
        values += [row[place]] if row else []
    try:
        return np.array([int(value) for value in values], dtype=np.int64)
    except (ValueError, OverflowError):
        return _texts(path, name, values)


def _texts(path: Path, name: str, values: list[str]) -> Column:
    """Texts as an array, in which each takes as much memory as the longest."""
    size = 4 * len(values) * max(map(len, values), default=0)
    if size > MOST_BYTES:
        raise FileError(
            f"{str(path)!r}: the texts of column {name!r} would take {size:,} bytes, each as much "
            f"as the longest; at most {MOST_BYTES:,} are read: shorten the longest"
        )
    return np.array(values, dtype=np.str_)


def _check_name(path: Path, name: str, setting: str, known: list[str]) -> None:
    if name not in known:
        columns = ", ".join(map(repr, known))[:MOST_SHOWN] or "no columns"
        raise SettingError(
            f"{setting} must be one of {columns}, the columns of {str(path)!r}; given {name!r}"
        )
