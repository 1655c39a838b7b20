"""Randomness is keyed, not shared: what a number is for decides what it is.

Every draw comes from a generator of its own, keyed by (seed, client, round, purpose). No draw
depends on what was drawn before it or in which process, so adding a client, a worker or another
kind of draw changes no other.
"""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


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
    words = np.frombuffer(key(seed, purpose, client_id, round_number), dtype="<u8")
    return np.random.Generator(np.random.Philox(key=words))
