"""What a node of Flower's sends: a model's array as `np.save` writes it."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord

from asyncfeded.flower.codec import STYPE, Codec
from asyncfeded.flower.model import Entry

SHAPE = (2, 3)
CODEC = Codec(
    (
        Entry("weight", 0, 6, SHAPE, np.dtype(np.float32)),
        Entry("steps", 6, 30, SHAPE, np.dtype(np.int64)),
    )
)


def saved(array: Any) -> bytes:
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


FLOATS = saved(np.arange(6, dtype=np.float32).reshape(SHAPE))
INTEGERS = saved(np.arange(6, dtype=np.int64).reshape(SHAPE) << 40)


def read_array(content: bytes) -> None:
    """Bytes in the place of an array of floats or of integers; what is read is the same again."""
    is_integers = b"<i8" in content[:64]
    arrays = {"weight": FLOATS, "steps": INTEGERS, "steps" if is_integers else "weight": content}
    record = ArrayRecord({name: Array("any", (1,), STYPE, data) for name, data in arrays.items()})
    vector = CODEC.vector(record)
    assert vector.shape == (30,)
    assert CODEC.vector(CODEC.record(vector)).tobytes() == vector.tobytes()


def arrays() -> Iterator[bytes]:
    yield FLOATS
    yield INTEGERS
    yield saved(np.asfortranarray(np.ones(SHAPE, np.float32)))
