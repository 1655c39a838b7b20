"""How a version of the model reaches the clients."""

from typing import Any
from weakref import ref

import numpy as np
import ray
from ray.exceptions import RayError

from asyncfeded.cluster.actors import in_one_line
from asyncfeded.core.errors import ClusterError
from asyncfeded.core.vectors import Vector

INLINE_BYTES = 100_000
"""Ray sends arguments up to about this size with the call; larger ones go by the object store."""


class Published:
    """Puts a version into the object store once, however many clients are given it.

    Only the newest is remembered. An older one stays in the store while a call that was given it
    is under way, and no longer.
    """

    def __init__(self) -> None:
        self._newest: ref[Vector] | None = None
        self._place: Any = None

    def __call__(self, parameters: Vector) -> Any:
        """What to give to a call in place of these parameters."""
        if self._newest is None or self._newest() is not parameters:
            small = parameters.nbytes <= INLINE_BYTES
            self._place = np.array(parameters) if small else self._put(parameters)
            self._newest = ref(parameters)
        return self._place

    def _put(self, parameters: Vector) -> Any:
        try:
            return ray.put(parameters)
        except RayError as error:
            raise ClusterError(
                f"a version of {parameters.nbytes:,} bytes does not fit into the object store: "
                f"{in_one_line(error)}; give Ray more memory, or run fewer clients"
            ) from None
