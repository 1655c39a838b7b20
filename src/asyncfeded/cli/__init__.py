"""The command line."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.cli.output import make_console, say

__all__ = [
    "make_console",
    "say",
]

__getattr__ = later(
    __name__,
    {
        "make_console": "asyncfeded.cli.output",
        "say": "asyncfeded.cli.output",
    },
)
