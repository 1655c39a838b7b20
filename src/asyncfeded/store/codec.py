"""Trees of plain data as bytes, and back: arrays as safetensors, all else as JSON.

A tree is made of arrays, numbers, texts, None, lists and mappings from texts to trees. The bytes
are one safetensors file: an array `tree` with the JSON text, in which `{"$array": "3"}` stands for
the array of that name. An array that stands in several places is written once.

Decoding is safe whatever the bytes are. Nothing in them is run, lengths are checked against the
bytes that are there before memory is taken, and what cannot be read is a StateError.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from asyncfeded.core.errors import StateError
from asyncfeded.core.persistent import PersistentMap
from asyncfeded.reading import parse_json
from asyncfeded.tensors import Array, pieces, unpacked

Tree = Any
"""An array, a number, a text, None, a list of trees or a mapping from texts to trees."""

FORMAT = 1
"""Raised when the meaning of the bytes changes: older bytes are then refused."""
KINDS = "biuf"
MARK = "$"
"""Begins the keys that stand for something; a mapping with such a key of its own is a `$dict`."""
DEEPEST = 100
TREE = "tree"
SMALL = 2**16
"""Fewer bytes are quicker copied than written in pieces."""


def encode(tree: Tree) -> bytes:
    """Turn a tree into bytes; equal trees give equal bytes."""
    return b"".join(encode_in_pieces(tree))


def encode_in_pieces(tree: Tree) -> list[bytes | memoryview]:
    """The same bytes as pieces; large arrays are not copied, and must not change while in use."""
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
    found = pieces(arrays, {"format": str(FORMAT)})
    return [b"".join(found)] if size_of(found) < SMALL else found


def decode(content: bytes) -> Tree:
    """Turn bytes into the tree that they were made from; the arrays can be written to."""
    try:
        arrays, about = unpacked(content)
    except ValueError as error:
        raise _damaged(error) from None
    _check_format(about.get("format"))
    if TREE not in arrays:
        raise _damaged("it has no tree")
    try:
        return _tree(parse_json(arrays.pop(TREE).tobytes()), arrays, DEEPEST)
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(f"its tree cannot be read: {error!r:.200}") from None


def size_of(pieces: Iterable[bytes | memoryview]) -> int:
    """How many bytes these are together."""
    return sum(memoryview(piece).nbytes for piece in pieces)


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


def _check_format(written: str | None) -> None:
    """Refuse bytes of another version of this package, by name."""
    if written != str(FORMAT):
        raise StateError(
            f"the saved state has format {written!r:.20}, this version of asyncfeded reads "
            f"format {FORMAT}: go on with the version that wrote it"
        )


def _tree(plain: Any, arrays: Mapping[str, Array], deepest: int) -> Tree:
    """Put arrays and mappings into the places that stand for them."""
    if deepest == 0:
        raise ValueError("it is nested too deeply")

    def below(value: Any) -> Tree:
        return _tree(value, arrays, deepest - 1)

    match plain:
        case {"$array": str(name), **more} if not more:
            return arrays[name]
        case {"$float": "nan" | "inf" | "-inf" as text, **more} if not more:
            return float(text)
        case {"$map": list(items), **more} if not more:
            return PersistentMap(_entries(items, below))
        case {"$dict": list(items), **more} if not more:
            return _entries(items, below)
        case dict():
            if any(key.startswith(MARK) for key in plain):
                raise ValueError(f"unknown mark {next(iter(plain))!r:.20}")
            return {key: below(item) for key, item in plain.items()}
        case list():
            return [below(item) for item in plain]
        case float() if not isfinite(plain):
            raise ValueError("a number is not finite")
    return plain


def _entries(items: list[Any], below: Callable[[Any], Tree]) -> dict[str, Tree]:
    """The entries of a mapping, each a text and a tree, each text once."""
    entries = {}
    for item in items:
        match item:
            case [str(key), value] if key not in entries:
                entries[key] = below(value)
            case _:
                raise ValueError(f"no entry of a mapping: {item!r:.40}")
    return entries


def _damaged(problem: object) -> StateError:
    return StateError(f"the saved state is damaged: {problem}")
