"""What a model and an update must be before anything is computed from them."""

from collections.abc import Mapping
from numbers import Real

import numpy as np

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.messages import NO_FIGURES, ClientUpdate, Refusal
from asyncfeded.core.vectors import FLOAT32, Vector, all_finite

LARGEST_COUNT = 2**53
"""Every whole number up to this one is exact as a float64."""
LARGEST_LIMB = 2**16 - 1
MOST_FIGURES = 64
"""How many figures a client may report."""


def check_initial(initial: object) -> None:
    """Refuse an initial model that is not a finite 1-D float32 array."""
    if not isinstance(initial, np.ndarray) or initial.dtype != FLOAT32 or initial.ndim != 1:
        raise SettingError(
            "initial must be a 1-D float32 array; given "
            f"{getattr(initial, 'dtype', type(initial).__name__)} "
            f"of shape {getattr(initial, 'shape', None)}"
        )
    require(initial.size > 0, "initial", "a vector of at least one element", initial)
    if not all_finite(initial):
        raise SettingError("initial must be finite; it has a NaN or an infinity")


def content_fault(update: ClientUpdate, size: int) -> Refusal | None:
    """Why an update does not fit a model of `size` elements; None if it does."""
    delta = update.delta
    # No subclass: a masked array, say, would spread to all that is computed from it.
    if type(delta) is not np.ndarray or delta.dtype != FLOAT32 or delta.ndim != 1:
        return Refusal.WRONG_TYPE
    examples, epochs = update.num_examples, update.epochs
    steps = 1 if update.steps is None else update.steps
    if not are_counts(examples, epochs, steps):
        return Refusal.WRONG_TYPE
    if update.figures != NO_FIGURES and not _are_figures(update.figures):
        return Refusal.WRONG_TYPE
    if delta.size != size:
        return Refusal.WRONG_LENGTH
    if not 1 <= examples <= LARGEST_COUNT:
        return Refusal.OUT_OF_RANGE
    if not (1 <= epochs <= LARGEST_COUNT and 1 <= steps <= LARGEST_COUNT):
        return Refusal.OUT_OF_RANGE
    return None


def _are_figures(figures: object) -> bool:
    """Whether a client's figures are a few numbers by name."""
    if not isinstance(figures, Mapping) or len(figures) > MOST_FIGURES:
        return False
    return all(isinstance(name, str) and fits_a_float(v) for name, v in figures.items())


def fits_a_float(value: object) -> bool:
    """Whether a float can hold this value; infinity and NaN count."""
    try:
        return isinstance(value, Real) and isinstance(float(value), float)
    except (OverflowError, ValueError, TypeError):
        return False


def are_limbs(elements: Vector) -> bool:
    """Whether all elements are whole numbers from 0 to 65,535, the parts of integers."""
    whole = (elements >= 0) & (elements <= LARGEST_LIMB) & (elements == np.floor(elements))
    return bool(whole.all())


def are_counts(*values: object) -> bool:
    """Whether all values are whole numbers, of Python or NumPy."""
    for value in values:
        if type(value) is int:  # nearly always, and the quickest to see
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            return False
    return True
