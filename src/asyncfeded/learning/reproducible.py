"""Torch and BLAS set up so that the same work gives the same bits, in any process.

The order of a sum, and so its last bits, can depend on the number of threads. And if all cores are
at work already, a second thread only makes them wait for each other.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.random import mtrand
from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on a single thread; afterwards on as many as before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def reproducible(key: bytes, generator: torch.Generator | None = None) -> Iterator[None]:
    """Use a single thread, and set the global generators by this key; afterwards all is as before.

    Generators: torch's for the CPU and, where another device is used, the one `generator` that is
    given for it; Python's `random` and NumPy's `numpy.random`.
    """
    number = int.from_bytes(key[:8], "little") >> 1
    # One by one: torch.manual_seed would also note a stack trace per GPU backend.
    generators = [torch.default_generator]
    if generator not in (None, torch.default_generator):
        generators.append(generator)
    states = [one.get_state() for one in generators]
    for one in generators:
        one.manual_seed(number)
    try:
        with one_thread(), _python_generator(number), _numpy_generator(number):
            yield
    finally:
        for one, state in zip(generators, states, strict=True):
            one.set_state(state)


@contextmanager
def _python_generator(number: int) -> Iterator[None]:
    state = random.getstate()
    random.seed(number)
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def _numpy_generator(number: int) -> Iterator[None]:
    theirs = mtrand.get_bit_generator()
    # Another generator takes the place of the user's. This forgets a normal number that was made in
    # a pair and kept for the next call. So the state is saved too, and seldom has to be put back.
    state = mtrand.get_state(legacy=False)
    mtrand.set_bit_generator(np.random.Philox(key=number))
    try:
        yield
    finally:
        mtrand.set_bit_generator(theirs)
        if state["has_gauss"]:
            mtrand.set_state(state)


class _OneBlasThread:
    """A limit that holds for the whole process: set by the first user, lifted by the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limit is not None:
                self._limit.__exit__(None, None, None)


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Let BLAS use a single thread per caller, as long as anybody is within this context."""
    return _one_blas_thread


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
