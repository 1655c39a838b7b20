"""The command line."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncfeded.cli.output import make_console, say

__all__ = [
    "make_console",
    "say",
]

_LATER = {
    "make_console": "asyncfeded.cli.output",
    "say": "asyncfeded.cli.output",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
