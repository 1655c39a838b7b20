"""Arrays as bytes of safetensors, and back: the one decoder of all that is binary.

Snapshots, records of journals, models and compact data are all of this form. It holds numbers and
no code. Every size is checked against the bytes that are there before memory is taken for it, and
what is not sound is a ValueError that says in one line what is wrong; who reads names the file.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asyncfeded.reading import parse_json

Array = npt.NDArray[Any]

_DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    **{f"I{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_ABOUT = "__metadata__"
_ALIGNED = 8
_MOST_IN_AN_ERROR = 200


class Tensors(NamedTuple):
    """Arrays by name, and texts by name that say what they are."""

    arrays: dict[str, Array]
    about: dict[str, str]


def packed(arrays: Mapping[str, Array], about: Mapping[str, str]) -> bytes:
    """Turn contiguous arrays and texts into bytes; the same give the same bytes."""
    return b"".join(pieces(arrays, about))


def pieces(arrays: Mapping[str, Array], about: Mapping[str, str]) -> list[bytes | memoryview]:
    """The same bytes as pieces: a header, and the arrays themselves, of which none is copied."""
    # The widest first: so each begins at a multiple of its own width.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, object] = {_ABOUT: dict(about)}
    start = 0
    for name in order:
        array = arrays[name]
        end = start + array.nbytes
        described = {"dtype": _NAMES[array.dtype], "shape": array.shape}
        header[name] = {**described, "data_offsets": (start, end)}
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    memory = (arrays[name].data for name in order if arrays[name].size)
    return [len(text).to_bytes(8, "little") + text, *memory]


def unpacked(content: bytes) -> Tensors:
    """Turn bytes into the arrays that they were made from; these can be written to."""
    from safetensors import SafetensorError, deserialize

    try:
        read: list[tuple[str, dict[str, Any]]] = deserialize(content)
    except (SafetensorError, OverflowError, MemoryError) as error:
        raise _damaged(error) from None
    found = dict(read)
    if len(found) != len(read):
        raise ValueError("an array is there twice")
    length = int.from_bytes(content[:8], "little")  # as deserialize has checked
    about = parse_json(content[8 : 8 + length]).get(_ABOUT) or {}
    return Tensors({name: _array(name, described) for name, described in found.items()}, about)


def about_file(path: Path) -> dict[str, str]:
    """Read the texts of a file alone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise _damaged(error) from None


def read_file(path: Path, names: Iterable[str]) -> dict[str, Array]:
    """Read a file that must hold arrays of exactly these names; none is copied twice."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            expected, found = sorted(names), sorted(file.keys())
            if found != expected:
                raise ValueError(
                    f"it must hold {_listed(expected)}; it holds {_listed(found) or 'none'}"
                )
            return {name: file.get_tensor(name) for name in expected}
    except (OSError, OverflowError, MemoryError, TypeError, SafetensorError) as error:
        raise _damaged(error) from None


def _array(name: str, described: Mapping[str, Any]) -> Array:
    dtype = _DTYPES.get(described["dtype"])
    if dtype is None:
        raise ValueError(f"array {name[:40]!r} is of {described['dtype']}")
    try:
        array: Array = np.frombuffer(described["data"], dtype).reshape(described["shape"])
    except (ValueError, OverflowError):  # no elements, but sizes that NumPy cannot count with
        raise ValueError(f"array {name[:40]!r} has a shape too large") from None
    return array


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)[:_MOST_IN_AN_ERROR]


def _damaged(error: Exception) -> ValueError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ValueError(f"no safetensors: {' '.join(reason.split())[:_MOST_IN_AN_ERROR]}")
