"""Reading a file of availability: what is wrong with the file is said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path

from asyncfeded.core.errors import FileError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name a file that cannot be read in this block."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"availability cannot be read from {str(path)!r}: {reason}") from None


def number(value: object) -> float:
    """A number as a file has it; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return nan
