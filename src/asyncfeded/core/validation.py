"""What a model and an update must be before anything is computed from them."""

import numpy as np

from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.messages import ClientUpdate, Refusal
from asyncfeded.core.vectors import FLOAT32, all_finite


def check_initial(initial: object) -> None:
    """Refuse what a model cannot start from."""
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
    """Why an update does not fit a model of `size` elements, if so."""
    delta = update.delta
    if not isinstance(delta, np.ndarray) or delta.dtype != FLOAT32 or delta.ndim != 1:
        return Refusal.WRONG_TYPE
    if not (is_count(update.num_examples) and is_count(update.epochs)):
        return Refusal.WRONG_TYPE
    if delta.size != size:
        return Refusal.WRONG_LENGTH
    if update.num_examples < 1 or update.epochs < 1:
        return Refusal.OUT_OF_RANGE
    return None


def is_count(value: object) -> bool:
    """Whether a value is a whole number of Python's or NumPy's."""
    return type(value) is int or (
        isinstance(value, int | np.integer) and not isinstance(value, bool)
    )
