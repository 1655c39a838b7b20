"""Tables for the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Lay rows out under headings: the first column to the left, figures to the right."""
    laid_out = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD)
    for index, heading in enumerate(headings):
        laid_out.add_column(heading, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        laid_out.add_row(*(Text(cell) for cell in row))  # brackets are no markup
    return laid_out


def mean_and_spread(mean: float, sd: float, seeds: int, form: str) -> str:
    """Write a mean, with its standard deviation if there are seeds to take it over."""
    return format(mean, form) if seeds == 1 else f"{mean:{form}} ± {sd:{form}}"
