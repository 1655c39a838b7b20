"""Tables and plots from plain numbers."""

from typing import TYPE_CHECKING

from asyncfeded.late import later
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

__getattr__ = later(
    __name__,
    {
        "COLOURS": "asyncfeded.report.plots",
        "mean_and_spread": "asyncfeded.report.tables",
        "smoothed": "asyncfeded.report.plots",
        "table": "asyncfeded.report.tables",
        "write_picture": "asyncfeded.report.pictures",
    },
)
