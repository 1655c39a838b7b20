"""The command line."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.cli.output import make_console, say
    from asyncfeded.cli.steps import Steps

__all__ = [
    "Steps",
    "make_console",
    "say",
]

__getattr__ = later(
    __name__,
    {
        "Steps": "asyncfeded.cli.steps",
        "make_console": "asyncfeded.cli.output",
        "say": "asyncfeded.cli.output",
    },
)
