"""Tables for the terminal."""

from collections.abc import Sequence
from io import StringIO
from textwrap import wrap

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 3
"""Blanks between columns."""


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Lay rows out under headings: the first column to the left, figures to the right."""
    laid_out = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD)
    for index, heading in enumerate(headings):
        laid_out.add_column(Text(heading), justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        laid_out.add_row(*(Text(cell) for cell in row))  # brackets are no markup
    return laid_out


def as_text(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
) -> str:
    """The table as plain text.

    Where it would be wider than `width`, long headings are broken; cells are always whole.
    """
    cells = [max((cell_len(row[i]) for row in rows), default=0) for i in range(len(headings))]
    whole = sum(GAP + max(cell_len(h), wide) for h, wide in zip(headings, cells, strict=True))
    if width is not None and whole > width:
        headings = [
            "\n".join(wrap(heading, max(wide, 1), break_long_words=False))
            for heading, wide in zip(headings, cells, strict=True)
        ]
    text = StringIO()
    console = Console(file=text, width=10_000, color_system=None, force_jupyter=False)
    console.print(table("", headings, rows))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join([title, *(line for line in lines if line)])


def mean_and_spread(mean: float, sd: float, seeds: int, form: str) -> str:
    """Write a mean, with its standard deviation if there are seeds to take it over."""
    return format(mean, form) if seeds == 1 else f"{mean:{form}} ± {sd:{form}}"
