"""Every file that this package writes is whole, or it is not there.

A file is written beside its place, under another name, and renamed when it is complete. Text is
UTF-8, whatever the locale. What cannot be written is a FileError that names the file.

The log of a run is the one exception: it grows while the run goes on (`store/log.py`).
"""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from asyncfeded.core.errors import FileError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give the path to write to; what is there at the end takes the place of `path`.

    After an error, an earlier file is as it was and nothing is left beside it.
    """
    path = Path(path)
    unfinished = path.with_name(f".{token_hex(8)}.unfinished")
    try:
        try:
            yield unfinished
            _to_disk(unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: str | Path, error: OSError) -> FileError:
    """Say of a file that it cannot be written, and why."""
    return FileError(f"{str(path)!r} cannot be written: {error.strerror or error}")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8."""
    write_bytes(path, encoded(text))


def write_json(path: str | Path, value: object, *, indent: int | None = 2) -> None:
    """Write JSON; NumPy's numbers become plain ones, and NaN and infinity become null."""
    separators = (",", ":") if indent is None else None
    try:
        text = json.dumps(
            _plain(value), indent=indent, ensure_ascii=False, allow_nan=False, separators=separators
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise FileError(f"{str(path)!r} cannot be written as JSON: {error}") from None
    write_text(path, text + "\n")


def write_table(path: str | Path, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write CSV with a row of headings."""
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(headings)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def encoded(text: str) -> bytes:
    r"""Encode text as UTF-8.

    A path that the locale cannot decode has surrogates in the place of bytes. They become these
    bytes again where all of them together are UTF-8, and otherwise \udcff, as JSON writes them.
    """
    try:
        content = text.encode("utf-8", "surrogateescape")
        content.decode("utf-8")
    except UnicodeError:
        return text.encode("utf-8", "backslashreplace")
    return content


def _to_disk(path: Path) -> None:
    """Wait until the content is on the disk: a crash must not leave a renamed, empty file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _plain(value: object) -> object:
    """The same with plain numbers; other objects stay, for JSON to refuse."""
    match value:
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case np.generic() | np.ndarray():
            return _plain(value.tolist())
        case float() if not np.isfinite(value):
            return None
        case Path():
            return str(value)
        case _:
            return value
