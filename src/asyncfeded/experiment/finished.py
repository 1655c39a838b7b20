"""A finished run, read from the files that it has written."""

import csv
from collections import Counter
from io import StringIO
from pathlib import Path

from asyncfeded.core.errors import StateError
from asyncfeded.experiment.begun import SUMMARY_FILE
from asyncfeded.reading import MOST_BYTES, read_json, read_text
from asyncfeded.result import ClientFigures, Result
from asyncfeded.runtime.events import Evaluated


def read_result(folder: Path) -> Result:
    """Read what a finished run in this folder has measured, to the last bit."""
    try:
        summary = read_json(folder / SUMMARY_FILE)
        settings = summary["settings"]
        return Result(
            settings,
            "real" if settings["on"] == "ray" else "virtual",
            summary["kernel"],
            curve=[
                Evaluated(float(seconds), int(version), _metrics(metrics))
                for (seconds, version), metrics in _rows(folder / "accuracy.csv", 2)
            ],
            updates=int(summary["updates"]),
            refused=Counter(summary["rejected"]),
            lost_rounds=Counter(summary["lost_rounds"]),
            lost=Counter(summary["lost"]),
            clients={
                name: _client(figures) for (name,), figures in _rows(folder / "clients.csv", 1)
            },
            versions=int(summary["versions"]),
            log_sha256=summary["log_sha256"],
            wall_seconds=float(summary["wall_seconds"]),
            begun=True,
            finished=True,
            stopped_by=summary["stopped_by"],
        )
    except (ArithmeticError, LookupError, TypeError, ValueError, csv.Error, OSError) as error:
        raise StateError(
            f"the results in {str(folder)!r} are damaged: {error!r:.200}; remove the folder, and "
            "its run is made again"
        ) from None


def _rows(path: Path, first: int) -> list[tuple[list[str], dict[str, str]]]:
    """The rows of a table, each as its first cells and the others by name."""
    text = StringIO(read_text(path, MOST_BYTES), newline="")
    headings, *rows = csv.reader(text)
    return [(row[:first], dict(zip(headings[first:], row[first:], strict=True))) for row in rows]


def _metrics(cells: dict[str, str]) -> dict[str, float]:
    return {name: float(value) for name, value in cells.items()}


def _client(cells: dict[str, str]) -> ClientFigures:
    return ClientFigures(
        source=cells["source"],
        examples=int(cells["examples"]),
        updates=int(cells["updates"]),
        accuracy=float(cells["accuracy"]) if cells["accuracy"] else None,
        lost_rounds=int(cells["lost_rounds"]),
    )
