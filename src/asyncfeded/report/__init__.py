"""Tables and plots from plain numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asyncfeded.report.spread import Spread, deviation, spread

if TYPE_CHECKING:
    from asyncfeded.report.pictures import write_picture
    from asyncfeded.report.plots import COLOURS, smoothed
    from asyncfeded.report.tables import mean_and_spread, table

__all__ = [
    "COLOURS",
    "Spread",
    "deviation",
    "mean_and_spread",
    "smoothed",
    "spread",
    "table",
    "write_picture",
]

_LATER = {
    "COLOURS": "asyncfeded.report.plots",
    "mean_and_spread": "asyncfeded.report.tables",
    "smoothed": "asyncfeded.report.plots",
    "table": "asyncfeded.report.tables",
    "write_picture": "asyncfeded.report.pictures",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
