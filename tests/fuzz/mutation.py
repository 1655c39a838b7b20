"""Changes of an input: of its bytes, or of the tree that it holds."""

import json
from random import Random
from typing import Any

import numpy as np

from asyncfeded import PersistentMap, StateError
from asyncfeded.store.codec import decode, encode

NUMBERS = (0, 1, -1, 2, 7, 255, 2**31, 2**53 + 1, 2**63, -(2**70), 0.0, -0.5, 1e308, 5e-324)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    "",
    "a",
    "b",
    "?",
    "é\0",
    float("nan"),
    float("inf"),
    [],
    {},
    ["a"],
    {"": 0},
)
INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, ord("{"), ord("["), ord('"'), ord(","), ord("\n"))


def mutated_bytes(content: bytes, random: Random) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        start = random.randrange(len(changed) + 1)
        length = random.choice((1, 1, 2, 8, 40))
        match random.randrange(5):
            case 0 if start < len(changed):
                changed[start] ^= 1 << random.randrange(8)
            case 1 if start < len(changed):
                changed[start] = random.choice(INTERESTING)
            case 2:
                del changed[start : start + length]
            case 3:
                changed[start:start] = changed[start : start + length]
            case _:
                changed[start:start] = random.randbytes(length)
    return bytes(changed)


def mutated_tree(content: bytes, random: Random) -> bytes:
    """One or two places of a tree changed; other bytes are changed as bytes."""
    try:
        tree = decode(content)
        for _ in range(random.choice((1, 1, 2))):
            tree = _changed(tree, random)
        return encode(tree)
    except StateError:
        return mutated_bytes(content, random)


def mutated_header(content: bytes, random: Random) -> bytes:
    """A place in the header of safetensors changed, and its length with it."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        return mutated_bytes(content, random)
    changed = json.dumps(_changed(header, random)).encode()
    return len(changed).to_bytes(8, "little") + changed + content[8 + length :]


def _changed(tree: Any, random: Random) -> Any:
    """Go down at random, and change what is there."""
    if random.random() < 0.8:
        match tree:
            case dict() if tree:
                key = random.choice(list(tree))
                if random.random() < 0.1:
                    return {k: v for k, v in tree.items() if k != key}
                return {**tree, key: _changed(tree[key], random)}
            case PersistentMap() if len(tree):
                key = random.choice(list(tree))
                return tree.set(key, _changed(tree[key], random))
            case list() if tree:
                place = random.randrange(len(tree))
                if random.random() < 0.2:
                    return [*tree[:place], tree[place], *tree[place:]]
                return [*tree[:place], _changed(tree[place], random), *tree[place + 1 :]]
            case np.ndarray() if tree.size:
                return _changed_array(tree, random)
    return random.choice(random.choice((NUMBERS, OTHERS)))


def _changed_array(array: Any, random: Random) -> Any:
    match random.randrange(5):
        case 0:
            return array.astype(random.choice(("f4", "f8", "i8", "u1", "?")))
        case 1:
            return np.resize(array, random.choice(((0,), (1,), (5,), (2, 2), (0, 3))))
        case 2:
            return array[..., None]
    changed = array.copy()
    with np.errstate(all="ignore"):
        value = np.array(random.choice(NUMBERS[:6] + (np.nan, np.inf, 1e30)))  # noqa: RUF005
        changed.reshape(-1)[random.randrange(array.size)] = value.astype(array.dtype)
    return changed
