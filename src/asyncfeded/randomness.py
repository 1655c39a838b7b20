"""Randomness is keyed, not shared: what a number is for decides what it is.

Every draw comes from a generator of its own, keyed by (seed, client, round, purpose). No draw
depends on what was drawn before it or in which process, so adding a client, a worker or another
kind of draw changes no other.
"""

import struct
import threading
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Words = tuple[int, int]


def key(seed: int, purpose: str, client_id: str = "", round_number: int = 0) -> bytes:
    """16 bytes that belong to this purpose alone."""
    name = f"{seed}|{purpose}|{round_number}|{client_id}"
    return blake2b(name.encode(), digest_size=16).digest()


def one_of_each_part(count: int, parts: int, draw: np.random.Generator) -> Places:
    """Cut the places 0 to count − 1 into equal parts and draw one from each, in rising order."""
    bounds = np.linspace(0, count, parts + 1).astype(np.int64)
    return draw.integers(bounds[:-1], bounds[1:])


def generator(
    seed: int, purpose: str, client_id: str = "", round_number: int = 0
) -> np.random.Generator:
    """Return the generator for this purpose."""
    words = np.array(_words(seed, purpose, client_id, round_number), dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words))


def passing_generator(
    seed: int, purpose: str, client_id: str = "", round_number: int = 0
) -> np.random.Generator:
    """Return the same generator for draws that are over before this thread asks for another.

    There is one per thread, set to one key after another: to make one takes ten times as long.
    """
    return _passing.set_to(_words(seed, purpose, client_id, round_number))


class _Passing(threading.local):
    """A generator that is used again and again.

    Its state is kept in lists: NumPy reads it number by number, which is slower from arrays.
    """

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._bits)
        self._inner: dict[str, Sequence[int]] = {"counter": [0] * 4, "key": [0] * 2}
        self._state: Any = {**self._bits.state, "state": self._inner, "buffer": [0] * 4}

    def set_to(self, words: Words) -> np.random.Generator:
        self._inner["key"] = words
        self._bits.state = self._state
        return self._generator


_passing = _Passing()
_TWO_WORDS = struct.Struct("<2Q")


def _words(seed: int, purpose: str, client_id: str, round_number: int) -> Words:
    first, second = _TWO_WORDS.unpack(key(seed, purpose, client_id, round_number))
    return first, second
