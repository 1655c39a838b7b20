"""One driver for every transport."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncfeded.runtime.events import Event, Received
    from asyncfeded.runtime.loop import run
    from asyncfeded.runtime.membership import Membership

__all__ = [
    "Event",
    "Membership",
    "Received",
    "run",
]

_LATER = {
    "Event": "asyncfeded.runtime.events",
    "Membership": "asyncfeded.runtime.membership",
    "Received": "asyncfeded.runtime.events",
    "run": "asyncfeded.runtime.loop",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
