"""A run as data, so that another process can go on with it.

A run is whole between two signals: no update is half handled, and every event was heard by all.
Each part of a run gives its state as a tree of arrays, numbers, texts, lists and mappings, and
takes it back in the next process before anything happens there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from asyncfeded.core.errors import AsyncFedEDError, StateError

Saved = dict[str, Any]
"""The state of a part, by name."""


@runtime_checkable
class Savable(Protocol):
    """A part of a run that has a state: a transport, a selection, a callback."""

    def state(self) -> Saved:
        """Return everything that the part needs to go on; what follows must not change it."""

    def restore(self, state: Saved) -> None:
        """Take over what `state` returned in an earlier process."""


def savable(part: object) -> Savable | None:
    """The part, if it has a state."""
    return part if isinstance(part, Savable) else None


@contextmanager
def restoring(part: str) -> Iterator[None]:
    """Say of a state that a part of the run cannot take back that it is damaged."""
    try:
        yield
    except AsyncFedEDError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(f"the saved state of the {part} is damaged: {error!r}") from None
