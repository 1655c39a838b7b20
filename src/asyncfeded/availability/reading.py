"""Reading a file of availability: what is wrong with the file is said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path

from asyncfeded.core.errors import FileError


@contextmanager
def reading(path: Path, most_bytes: int) -> Iterator[None]:
    """Check the size of a file before it is read in this block, and name it if that fails."""
    try:
        size = path.stat().st_size
        if size > most_bytes:
            raise FileError(f"{str(path)!r} must have at most {most_bytes:,} bytes; given {size:,}")
        yield
    except (OSError, RecursionError, ValueError) as error:
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
