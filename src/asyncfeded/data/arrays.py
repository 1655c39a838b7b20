"""Arrays in one file, for caches and fetched data: whole or not at all.

The format is safetensors: a header whose sizes are checked against the file's before anything is
read, plain bytes after it, and no code.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from asyncfeded.core.errors import FileError
from asyncfeded.files import unwritable, write_bytes

Arrays = Mapping[str, npt.NDArray[Any]]


def write_arrays(path: Path, arrays: Arrays, names: list[str], source: str) -> None:
    """Write arrays, the names of their owners, and a text that says what they were made from."""
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    content = save(contiguous, {"source": source, "names": json.dumps(names)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    write_bytes(path, content)


def _about(path: Path) -> dict[str, str]:
    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise FileError(
            f"{str(path)!r} is not a complete data file ({error}): remove it and make it again"
        ) from None


def read_arrays(
    path: Path, dtypes: Mapping[str, str], source: str | None = None
) -> tuple[dict[str, npt.NDArray[Any]], list[str]]:
    """Read the arrays of these names and types, and the names of their owners.

    With a `source`, refuse arrays that were made from another.
    """
    about = _about(path)
    if source is not None and about.get("source") != source:
        raise FileError(f"{str(path)!r} was made from other files")
    names = _names(path, about.get("names", ""))
    with safe_open(path, framework="numpy") as file:
        found = set(file.keys())
        if found != set(dtypes):
            raise FileError(
                f"{str(path)!r} must hold the arrays {', '.join(sorted(dtypes))}; it holds "
                f"{', '.join(sorted(found)) or 'none'}: remove it and make it again"
            )
        try:
            arrays = {key: file.get_tensor(key) for key in dtypes}
        except (TypeError, ValueError, SafetensorError) as error:
            raise FileError(f"{str(path)!r} cannot be read ({error}): make it again") from None
    for key, dtype in dtypes.items():
        if str(arrays[key].dtype) != dtype or arrays[key].ndim == 0:
            raise FileError(
                f"{str(path)!r} must hold {key} as an array of {dtype}; it holds "
                f"{arrays[key].dtype} of shape {arrays[key].shape}: remove it and make it again"
            )
    return arrays, names


def _names(path: Path, text: str) -> list[str]:
    try:
        names = json.loads(text)
    except json.JSONDecodeError:
        names = None
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if texts and len(set(names)) == len(names):
        return list(names)
    raise FileError(f"{str(path)!r} must have different names: remove it and make it again")
