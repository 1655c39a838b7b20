"""Arrays in one file, for caches and fetched data: whole or not at all.

The form is safetensors, which holds no code (`tensors.py`).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import FileError
from asyncfeded.files import unwritable, write_bytes
from asyncfeded.reading import parse_json
from asyncfeded.tensors import about_file, packed, read_file

Arrays = Mapping[str, npt.NDArray[Any]]


def write_arrays(path: Path, arrays: Arrays, names: list[str], source: str) -> None:
    """Write arrays, the names of their owners, and a text that says what they were made from."""
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    content = packed(contiguous, {"source": source, "names": json.dumps(names)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    write_bytes(path, content)


def read_arrays(
    path: Path, dtypes: Mapping[str, str], source: str | None = None
) -> tuple[dict[str, npt.NDArray[Any]], list[str]]:
    """Read the arrays of these names and types, and the names of their owners.

    With a `source`, refuse arrays that were made from another.
    """
    try:
        about = about_file(path)
        if source is not None and about.get("source") != source:
            raise FileError(f"{str(path)!r} was made from other files")
        names = _names(path, about.get("names", ""))
        arrays = read_file(path, dtypes)
    except ValueError as error:
        raise FileError(
            f"{str(path)!r} is not a complete data file ({error}): remove it and make it again"
        ) from None
    for key, dtype in dtypes.items():
        if str(arrays[key].dtype) != dtype or arrays[key].ndim == 0:
            raise FileError(
                f"{str(path)!r} must hold {key} as an array of {dtype}; it holds "
                f"{arrays[key].dtype} of shape {arrays[key].shape}: remove it and make it again"
            )
    return arrays, names


def _names(path: Path, text: str) -> list[str]:
    try:
        names = parse_json(text)
    except ValueError:
        names = None
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if texts and len(set(names)) == len(names):
        return list(names)
    raise FileError(f"{str(path)!r} must have different names: remove it and make it again")
