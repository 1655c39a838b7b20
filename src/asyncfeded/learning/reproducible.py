"""Torch set up so that the same work gives the same bits, in any process."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread; afterwards on as many as before.

    The order of a sum, and so its last bits, can depend on the number of threads. And where all
    cores are at work already, a second thread only makes them wait for each other.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def reproducible(key: bytes) -> Iterator[None]:
    """One thread, and a torch generator of this key; afterwards both are as before."""
    # The CPU's generator alone: torch.manual_seed would also note a stack trace per GPU backend.
    generator = torch.default_generator
    state = generator.get_state()
    generator.manual_seed(int.from_bytes(key[:8], "little") >> 1)
    try:
        with one_thread():
            yield
    finally:
        generator.set_state(state)
