"""What every data set looks like to the rest: arrays of examples and labels per client."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Examples:
    """Inputs and labels, one row each."""

    x: npt.NDArray[Any]
    y: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True)
class FederatedData:
    """A data set in parts: the training and the test examples of every client."""

    name: str
    num_classes: int
    train: Mapping[str, Examples]
    test: Mapping[str, Examples]


def client_names(count: int) -> list[str]:
    """Names for so many clients: client-0, client-1 and so on."""
    return [f"client-{index}" for index in range(count)]
