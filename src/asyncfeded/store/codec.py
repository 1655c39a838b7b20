"""Trees of plain data as bytes, and back: arrays as safetensors, all else as JSON.

A tree is made of arrays, numbers, texts, None, lists and mappings from texts to trees. The bytes
are one safetensors file: an array `tree` with the JSON text, in which `{"$array": "3"}` stands for
the array of that name. An array that stands in several places is written once.

Decoding is safe whatever the bytes are. Nothing in them is run, lengths are checked against the
bytes that are there before memory is taken, and what cannot be read is a StateError.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import StateError
from asyncfeded.core.persistent import PersistentMap

Array = npt.NDArray[Any]
Tree = Any
"""An array, a number, a text, None, a list of trees or a mapping from texts to trees."""

FORMAT = 1
"""Raised when the meaning of the bytes changes: older bytes are then refused."""
KINDS = "biuf"
MARK = "$"
"""Begins the keys that stand for something; a mapping with such a key of its own is a `$dict`."""
DEEPEST = 100
TREE = "tree"


def encode(tree: Tree) -> bytes:
    """Turn a tree into bytes; equal trees give equal bytes."""
    from safetensors.numpy import save

    arrays: dict[str, Array] = {}
    places: dict[tuple[object, ...], str] = {}

    def plain(value: Tree) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                number = float(value)
                return number if np.isfinite(number) else {"$float": repr(number)}
            case np.ndarray():
                return {"$array": _named(value, arrays, places)}
            case PersistentMap():
                return {"$map": [[key, plain(item)] for key, item in value.items()]}
            case Mapping():
                if any(key.startswith(MARK) for key in value):
                    return {"$dict": [[key, plain(item)] for key, item in value.items()]}
                return {key: plain(item) for key, item in value.items()}
            case list() | tuple():
                return [plain(item) for item in value]
        raise StateError(f"a {type(value).__name__} cannot be saved; given {value!r:.100}")

    text = json.dumps(plain(tree), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    arrays[TREE] = np.frombuffer(text.encode(), np.uint8)
    return save(arrays, {"format": str(FORMAT)})


def decode(content: bytes) -> Tree:
    """Turn bytes into the tree that they were made from; the arrays can be written to."""
    from safetensors import SafetensorError, deserialize

    try:
        read: list[tuple[str, dict[str, Any]]] = deserialize(content)
    except (SafetensorError, OverflowError, MemoryError) as error:
        raise _damaged(f"no safetensors: {error}") from None
    _check_format(content)
    found = dict(read)
    if len(found) != len(read) or TREE not in found:
        raise _damaged("it has no tree, or an array twice")
    text = bytes(found.pop(TREE)["data"])
    arrays = {name: _array(described) for name, described in found.items()}
    try:
        plain = json.loads(text, parse_constant=_no_number)
        return _tree(plain, arrays, DEEPEST)
    except RecursionError:
        raise _damaged("it is nested too deeply") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(f"its tree cannot be read: {error!r}") from None


def _named(array: Array, arrays: dict[str, Array], places: dict[tuple[object, ...], str]) -> str:
    """The name of an array, which is written once for all views of the same memory."""
    if array.dtype.kind not in KINDS or array.dtype.itemsize > 8:
        raise StateError(f"an array of {array.dtype} cannot be saved; use numbers of NumPy")
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    address = native.__array_interface__["data"][0]
    place = (
        (address, native.dtype.str, native.shape)
        if native.size
        else (native.dtype.str, native.shape)
    )
    if place not in places:
        places[place] = str(len(places))
        arrays[places[place]] = native
    return places[place]


def _check_format(content: bytes) -> None:
    """Refuse bytes of another version of this package, by name."""
    length = int.from_bytes(content[:8], "little")  # as deserialize has checked
    try:
        written = json.loads(content[8 : 8 + length])["__metadata__"]["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        written = None
    if written != str(FORMAT):
        raise StateError(
            f"the saved state has format {written!r:.20}, this version of asyncfeded reads "
            f"format {FORMAT}: go on with the version that wrote it"
        )


_DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    **{f"I{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
}


def _array(described: Mapping[str, Any]) -> Array:
    dtype = _DTYPES.get(described["dtype"])
    if dtype is None:
        raise _damaged(f"it has an array of {described['dtype']}")
    array: Array = np.frombuffer(described["data"], dtype).reshape(described["shape"])
    return array


def _tree(plain: Any, arrays: Mapping[str, Array], deepest: int) -> Tree:
    """Put arrays and mappings into the places that stand for them."""
    if deepest == 0:
        raise RecursionError

    def below(value: Any) -> Tree:
        return _tree(value, arrays, deepest - 1)

    match plain:
        case {"$array": str(name)}:
            return arrays[name]
        case {"$float": str(text)}:
            return float(text)
        case {"$map": list(items)}:
            return PersistentMap({str(key): below(item) for key, item in items})
        case {"$dict": list(items)}:
            return {str(key): below(item) for key, item in items}
        case dict():
            if any(key.startswith(MARK) for key in plain):
                raise ValueError(f"unknown mark {next(iter(plain))!r:.20}")
            return {key: below(item) for key, item in plain.items()}
        case list():
            return [below(item) for item in plain]
    return plain


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _damaged(problem: str) -> StateError:
    return StateError(f"the saved state is damaged: {problem}")
