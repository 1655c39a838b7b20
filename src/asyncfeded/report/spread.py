"""Means over seeds and their standard deviations, the same in tables and in plots."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds and its standard deviation."""

    mean: float
    sd: float


def deviation(runs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The standard deviation over the first axis, of a sample (n − 1); of one run, 0."""
    if len(runs) < 2:
        return np.zeros(runs.shape[1:])
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.float64] = runs.std(axis=0, ddof=1)
    return found


def spread(values: Iterable[float | None]) -> Spread:
    """The mean and the deviation; where not all values are finite, there is no deviation."""
    known = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    sd = float(deviation(known)) if np.isfinite(known).all() else 0.0
    return Spread(float(known.mean()), sd)
