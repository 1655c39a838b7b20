"""Looking for what is wrong with code that was broken on purpose."""

from collections.abc import Callable

from asyncfeded.core.errors import AsyncFedEDError
from faults.chance import InvariantError
from faults.histories import History

MOST_HISTORIES = 400


def found_by(make: Callable[[int], History]) -> Exception:
    """The first error of the histories of broken code; that there is none is an error."""
    for seed in range(MOST_HISTORIES):
        try:
            make(seed).run()
        except (InvariantError, AsyncFedEDError, OSError) as error:
            return error
    raise AssertionError(f"not found in {MOST_HISTORIES} histories")
