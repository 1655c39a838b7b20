"""What becomes of a round in which a client is suspended.

There are two laws. In both, a round is suspended with probability P.

`lose`, as the authors of AsyncFedED ran it. Their clients' rows show that a suspended round is
trained, that its update never arrives, and that the client hangs for up to three times the round's
own length T:

    task ──download──train──upload──✗┄┄┄┄┄┄hang h ~ U(0, 3) · T┄┄┄┄┄┄▶ a fresh task, with the same K
         ◀─────────── T ───────────▶

`delay`, which loses nothing. The client hangs before it trains, again and again with probability P,
each time for up to 5.4 of its usual rounds, and everything that it sends is late by that:

    task ──download──┄┄hang┄┄┄┄hang┄┄──train──upload──▶ update, and the next task

Recorded hangs take the place of drawn ones: see `read_hangs`.
"""

import csv
from collections.abc import Mapping
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from asyncfeded.core.errors import FileError
from asyncfeded.reading import read_text

Hangs = Literal["lose", "delay"]

LONGEST_HANG = 3.0
"""Of a lost round, in units of its own length: fits the quantiles of the authors' hangs."""
LONGEST_LATE_HANG = 5.4
"""Of a late round, in units of the client's usual round."""
HANG_COLUMNS = ("client", "round", "hang")
MOST_HANG_BYTES = 1 << 28

RecordedHangs = Mapping[tuple[str, int], float]
"""The rounds that are lost, by client and number, and their hangs in units of the round."""


class Loss(NamedTuple):
    """A lost round, and how long its client hangs, in units of the round's own length."""

    hang_rounds: float


def drawn_loss(draw: np.random.Generator, probability: float) -> Loss | None:
    """Draw whether a round is lost."""
    if draw.random() < probability:
        return Loss(draw.uniform(0.0, LONGEST_HANG))
    return None


def drawn_delay(draw: np.random.Generator, probability: float) -> float:
    """Draw how late a round begins, in units of the client's usual round."""
    rounds = 0.0
    while draw.random() < probability:
        rounds += draw.uniform(0.0, LONGEST_LATE_HANG)
    return rounds


def recorded_loss(hangs: RecordedHangs, client_id: str, round_number: int) -> Loss | None:
    """Look up whether a round was lost."""
    hang = hangs.get((client_id, round_number))
    return None if hang is None else Loss(hang)


def read_hangs(path: Path) -> RecordedHangs:
    """Read recorded hangs: a CSV file with the columns client, round and hang.

    Each line is a round that was lost, with its hang in units of the round's own length. All other
    rounds arrive.
    """
    try:
        text = read_text(path, MOST_HANG_BYTES)
        return _hangs(path, csv.DictReader(StringIO(text, newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"hangs cannot be read from {str(path)!r}: {reason}") from None


def _hangs(path: Path, rows: "csv.DictReader[str]") -> RecordedHangs:
    names = rows.fieldnames or ()
    if missing := [name for name in HANG_COLUMNS if name not in names]:
        raise FileError(
            f"{str(path)!r} must have the columns {', '.join(HANG_COLUMNS)}; "
            f"it has no {', '.join(missing)}"
        )
    hangs: dict[tuple[str, int], float] = {}
    for number, row in enumerate(rows, start=2):
        try:
            key, hang = (row["client"], int(row["round"])), float(row["hang"])
        except (TypeError, ValueError):
            key, hang = ("", 0), -1.0
        if not key[0] or key[1] < 0 or not (isfinite(hang) and hang >= 0):
            raise FileError(
                f"{str(path)!r}, line {number}: must be a client, the number of a round from 0 on "
                f"and a hang of at least 0; given {list(row.values())!r:.100}"
            )
        hangs[key] = hang
    return hangs
