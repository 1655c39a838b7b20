"""Randomness is keyed, not shared: what a number is for decides what it is.

Every draw comes from a generator of its own, keyed by (seed, client, round, purpose). No draw
depends on what was drawn before it or in which process, so adding a client, a worker or another
kind of draw changes no other.
"""

from hashlib import blake2b

import numpy as np


def key(seed: int, purpose: str, client_id: str = "", round_number: int = 0) -> int:
    """128 bits that belong to this purpose alone."""
    name = f"{seed}|{purpose}|{round_number}|{client_id}"
    return int.from_bytes(blake2b(name.encode(), digest_size=16).digest(), "little")


def generator(
    seed: int, purpose: str, client_id: str = "", round_number: int = 0
) -> np.random.Generator:
    """Return the generator for this purpose."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, client_id, round_number)))
