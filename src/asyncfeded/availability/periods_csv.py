"""Periods from a CSV file: one line for each time in which a client is there."""

import csv
from collections.abc import Mapping
from io import StringIO
from math import isfinite
from pathlib import Path

from asyncfeded.availability.periods import RecordedPeriods
from asyncfeded.availability.reading import number, reading
from asyncfeded.core.errors import FileError
from asyncfeded.reading import read_text

COLUMNS = ("client", "start", "end")
MOST_BYTES = 1 << 28


def read_csv(path: Path, cycle: float) -> dict[str, RecordedPeriods]:
    """Read the columns client, start and end, in seconds."""
    periods: dict[str, list[tuple[float, float]]] = {}
    with reading(path):
        rows = csv.DictReader(StringIO(read_text(path, MOST_BYTES), newline=""))
        try:
            names = rows.fieldnames or ()
            if missing := [name for name in COLUMNS if name not in names]:
                raise FileError(
                    f"{str(path)!r} must have the columns {', '.join(COLUMNS)}; "
                    f"it has no {', '.join(missing)}"
                )
            for row in rows:
                client, period = _period(f"{str(path)!r}, line {rows.line_num}", row, cycle)
                periods.setdefault(client, []).append(period)
        except csv.Error as error:
            raise FileError(f"{str(path)!r}, line {rows.line_num}: {error}") from None
    if not periods:
        raise FileError(f"{str(path)!r} must have at least one line of a client; given none")
    return {client: RecordedPeriods(own, cycle) for client, own in periods.items()}


def _period(
    where: str, row: Mapping[str, str | None], cycle: float
) -> tuple[str, tuple[float, float]]:
    client, start, end = row["client"], number(row["start"]), number(row["end"])
    if not client:
        raise FileError(f"{where}: client must be a name; given {client!r}")
    if not (isfinite(start) and start >= 0):
        raise FileError(f"{where}: start must be a number, at least 0; given {row['start']!r:.40}")
    if not (isfinite(end) and end > start):
        raise FileError(
            f"{where}: end must be a number above {start:g}, the start; given {row['end']!r:.40}"
        )
    if start >= cycle:
        raise FileError(
            f"{where}: start must be below {cycle:g}, the seconds after which the periods begin "
            f"again (repeat_every); given {row['start']!r:.40}"
        )
    return client, (start, end)
