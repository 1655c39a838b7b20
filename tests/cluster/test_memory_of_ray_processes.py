"""Processes that train on Ray keep the memory that they have freed."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
import ray

import toy
from asyncfeded.cluster.actors import Actor
from asyncfeded.cluster.processes import ClientProcess, WorkerProcess
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.runtime.jobs import order_of

pytestmark = [
    pytest.mark.usefixtures("ray_here"),
    pytest.mark.skipif(
        not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="asks glibc 2.33 or newer"
    ),
]

PIECE_BYTES = 16 * 2**20
"""Too large for glibc to keep unless it is told to, and small enough then."""


def pieces_given_back_when_freed() -> int:
    """How many pieces of memory are borrowed from the system for one allocation alone."""

    class Figures(ctypes.Structure):
        _fields_ = tuple(
            (name, ctypes.c_size_t)
            for name in (
                *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
                *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
            )
        )

    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Figures
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    before = library.mallinfo2().hblks
    piece = library.malloc(PIECE_BYTES)
    borrowed = library.mallinfo2().hblks - before
    library.free(piece)
    return int(borrowed)


@pytest.mark.parametrize("process", [ClientProcess, WorkerProcess])
def test_a_process_that_trains_keeps_what_it_has_freed(
    process: type[ClientProcess] | type[WorkerProcess], tmp_path: Path
) -> None:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    counted = tmp_path / "counted"

    def train(task: TrainTask) -> ClientUpdate:
        counted.write_text(str(pieces_given_back_when_freed()))
        return toy.toy_train(task)

    recipe = (lambda: train) if process is ClientProcess else (lambda: train, None)
    actor = Actor(process, recipe, 0.1)
    try:
        assert ray.get(actor.prepare())
        task = TrainTask("client-0", 1, np.zeros(toy.SIZE, np.float32), 1, 0, 0.0)
        answer = ray.get(actor.call("train", task.parameters, order_of(task)))
        assert answer.update is not None, answer.failure
    finally:
        actor.end()
    assert counted.read_text() == "0"
