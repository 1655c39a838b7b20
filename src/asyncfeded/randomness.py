"""Randomness is keyed, not shared: what a number is for decides what it is.

Every draw comes from a generator of its own, keyed by (seed, client, round, purpose). No draw
depends on what was drawn before it or in which process, so adding a client, a worker or another
kind of draw changes no other.
"""

import threading
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


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
    return np.random.Generator(np.random.Philox(key=_words(seed, purpose, client_id, round_number)))


def passing_generator(
    seed: int, purpose: str, client_id: str = "", round_number: int = 0
) -> np.random.Generator:
    """Return the same generator for draws that are over before this thread asks for another.

    There is one per thread, set to one key after another: to make one takes ten times as long.
    """
    return _passing.set_to(_words(seed, purpose, client_id, round_number))


class _Passing(threading.local):
    """A generator that is used again and again."""

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state

    def set_to(self, words: Words) -> np.random.Generator:
        self._state["state"]["key"] = words
        self._bits.state = self._state
        return self._generator


_passing = _Passing()


def _words(seed: int, purpose: str, client_id: str, round_number: int) -> Words:
    return np.frombuffer(key(seed, purpose, client_id, round_number), dtype="<u8")
