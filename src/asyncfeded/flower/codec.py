"""A model between the flat vector and Flower's `ArrayRecord`.

A record holds every tensor of the model's `state_dict` by name, each as `np.save` writes it, as
Flower's own strategies send them. What arrives may be anything: an array's header is compared with
the model and with the bytes that are there before memory is taken, and nothing is unpickled.
"""

from io import BytesIO
from weakref import ref

import numpy as np
from flwr.app import Array, ArrayRecord

from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.core.messages import Refusal
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.model import Entry, Layout, size_of
from asyncfeded.learning.limbs import from_limbs, to_limbs
from asyncfeded.npy import read_header

STYPE = "numpy.ndarray"
"""Flower's name for the bytes that `np.save` writes."""


class UnfitRecordError(AsyncFedEDError):
    """A record that is not of this model; `refusal` says for what reason it is refused."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


class Codec:
    """Turns vectors into records and back, for the models of one layout.

    The record of the newest vector is kept: many clients are sent the same version.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._names = {entry.name for entry in layout}
        self.size = size_of(layout)
        self._newest: ref[Vector] | None = None
        self._record = ArrayRecord()

    def record(self, vector: Vector) -> ArrayRecord:
        """The record of a vector, which must not be changed."""
        if self._newest is None or self._newest() is not vector:
            self._record = ArrayRecord({e.name: _array(e, vector) for e in self._layout})
            self._newest = ref(vector)
        return self._record

    def vector(self, record: ArrayRecord) -> Vector:
        """The vector of a record; one that is not of this model is an `UnfitRecordError`."""
        if record.keys() != self._names:
            unlike = sorted(record.keys() ^ self._names)
            raise UnfitRecordError(
                Refusal.WRONG_LENGTH,
                f"arrays must be those of the model; not so: {unlike[0]!r:.80}",
            )
        vector = np.empty(self.size, np.float32)
        for entry in self._layout:
            _read(entry, record[entry.name], vector)
        return vector


def _array(entry: Entry, vector: Vector) -> Array:
    part = vector[entry.start : entry.end]
    values = from_limbs(part, entry.dtype) if entry.is_exact else part
    return Array(values.reshape(entry.shape))


def _read(entry: Entry, array: Array, vector: Vector) -> None:
    """Read an array into its place in the vector."""

    def unfit(refusal: Refusal, what: str) -> UnfitRecordError:
        return UnfitRecordError(refusal, f"array {entry.name!r} {what}")

    if array.stype != STYPE:
        raise unfit(Refusal.WRONG_TYPE, f"must be written by np.save; given {array.stype!r:.40}")
    file = BytesIO(array.data)
    try:
        header = read_header(file)
    except ValueError as error:
        raise unfit(Refusal.WRONG_TYPE, f"cannot be read: {error}") from None
    if header.dtype != entry.dtype:
        raise unfit(Refusal.WRONG_TYPE, f"must be of {entry.dtype}; given {header.dtype!s:.40}")
    if header.shape != entry.shape:
        raise unfit(
            Refusal.WRONG_LENGTH, f"must have shape {entry.shape}; given {header.shape!s:.80}"
        )
    if len(array.data) - file.tell() != header.size:
        raise unfit(Refusal.WRONG_LENGTH, "is cut off, or followed by other bytes")
    values = np.frombuffer(array.data, header.dtype, offset=file.tell())
    values = values.reshape(header.shape, order="F" if header.fortran else "C")
    place = vector[entry.start : entry.end]
    if entry.is_exact:
        place[:] = to_limbs(values)
    else:
        place.reshape(entry.shape)[...] = values
