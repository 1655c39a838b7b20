"""A report as Markdown, with links to the images that lie beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from asyncfeded.store import write_text
from asyncfeded_paper.page import Grid, Section


def write_markdown(
    path: Path, title: str, lead: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write the sections of a report, one after another."""
    parts = [f"# {title}", *lead]
    for section in sections:
        parts += [f"## {section.title}", *section.paragraphs]
        parts += [f"![{section.title}]({name})" for name in section.files if name.endswith(".png")]
        for grid in section.grids:
            parts.append("\n".join(_table(grid)))
        if section.command:
            parts.append(f"Made by `{section.command}`.")
    write_text(path, "\n\n".join(parts) + "\n")


def _table(grid: Grid) -> Iterator[str]:
    """A table under its caption; a folded one is opened by a click."""
    if grid.folded:
        yield f"<details><summary>{grid.caption}</summary>\n"
    else:
        yield f"**{grid.caption}**\n"
    yield _row(grid.headings)
    yield _row(["---"] * len(grid.headings))
    for number, row in enumerate(grid.rows):
        yield _row(
            f"**{cell}**" if (number, column) in grid.bold else cell
            for column, cell in enumerate(row)
        )
    if grid.folded:
        yield "\n</details>"


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
