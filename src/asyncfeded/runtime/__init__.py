"""One driver for every transport."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.runtime.events import Evaluated, Event, Received
    from asyncfeded.runtime.loop import run
    from asyncfeded.runtime.membership import Membership

__all__ = [
    "Evaluated",
    "Event",
    "Membership",
    "Received",
    "run",
]

__getattr__ = later(
    __name__,
    {
        "Evaluated": "asyncfeded.runtime.events",
        "Event": "asyncfeded.runtime.events",
        "Membership": "asyncfeded.runtime.membership",
        "Received": "asyncfeded.runtime.events",
        "run": "asyncfeded.runtime.loop",
    },
)
