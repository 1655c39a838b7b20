"""`asyncfeded paper --predict-updates`: how many updates the devices make, as tables."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from asyncfeded.cli import say
from asyncfeded.report import mean_and_spread, table
from asyncfeded_paper.results import write_rows
from asyncfeded_paper.updates import prediction_rows, predictions


def predict_updates(
    console: Console, tasks: Sequence[str], suspensions: Sequence[float], seeds: int, folder: Path
) -> None:
    """Print a table per task, and write all of it to a file."""
    headings = ["rule", "P", "drawn hangs", "/ authors'", "authors' hangs", "/ authors'", "authors"]
    rows: list[dict[str, object]] = []
    for task in tasks:
        found = list(predictions([task], suspensions, seeds))
        shown = [
            (
                cell.rule,
                f"{cell.suspension:g}",
                mean_and_spread(cell.drawn.mean, cell.drawn.sd, seeds, ".0f"),
                f"{cell.drawn_ratio:.2f}",
                f"{cell.replayed:.0f}",
                f"{cell.replayed_ratio:.2f}",
                f"{cell.authors:.0f}",
            )
            for cell in found
        ]
        console.print(table(f"{task}: updates in 300 s, {seeds} seeds", headings, shown))
        rows += prediction_rows(found)
    path = folder / "tables" / "updates.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, rows)
    say(console, f"table: {path}")
