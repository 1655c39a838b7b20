"""What the runs of the evaluation gave, cell by cell, beside what the authors measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncfeded.experiment import PAPER_RULES, RunSettings
from asyncfeded.report import Spread, spread
from asyncfeded.store import write_table, write_text
from asyncfeded_paper.authors import AuthorsCell, authors_cells
from asyncfeded_paper.plan import OURS, STEERED, Cell, Plan, seeds_of, settings_of
from asyncfeded_paper.record import Record
from asyncfeded_paper.scope import TASKS

ROWS = (*PAPER_RULES, STEERED)
"""The rows of a cell's table: the paper's rules, and AsyncFedED squared and carried."""
TRAINING = ("unit", "learning_rate", "momentum", "decay", "decay_per")

Find = Callable[[RunSettings], Record | None]
"""Gives the run with these settings, if it was made already."""
Records = Mapping[Cell, Sequence[Record]]
"""The runs of each cell that there are, by seed."""


def find_records(plan: Plan, cells: Iterable[Cell], find: Find) -> Records:
    """The runs that were made; a cell without any is left out."""
    found = {}
    for cell in dict.fromkeys(cells):
        runs = (find(settings_of(plan, cell, seed)) for seed in seeds_of(plan, cell))
        records = [run for run in runs if run is not None]
        if records:
            found[cell] = records
    return found


def mean_maximum(runs: Sequence[Record]) -> float:
    """The mean over runs of their highest accuracy."""
    return spread(run.max_accuracy for run in runs).mean


def mean_accuracy(runs: Sequence[Record]) -> float:
    """The mean over runs and their whole course."""
    return spread(sum(run.accuracy) / len(run.accuracy) for run in runs).mean


@dataclass(frozen=True, slots=True)
class Measured:
    """What some runs of one cell gave."""

    runs: int
    max_accuracy: Spread
    t90_seconds: Spread
    training_t90_seconds: Spread
    """Without the start-up."""
    updates: Spread


@dataclass(frozen=True, slots=True)
class CellFigures:
    """One cell: ours, with hangs of our own and with the authors', and theirs."""

    task: str
    rule: str
    suspension: float
    drawn: Measured | None
    replayed: Measured | None
    authors: AuthorsCell | None

    @property
    def ours(self) -> Measured:
        """With hangs that are drawn anew for every seed, where there are such runs."""
        found = self.drawn or self.replayed
        assert found is not None
        return found

    @property
    def comparable(self) -> Measured:
        """With the hangs that the authors' clients had, where there is such a run."""
        found = self.replayed or self.drawn
        assert found is not None
        return found

    @property
    def difference(self) -> float | None:
        """By how much our maximum lies above theirs."""
        if self.authors is None:
            return None
        return self.comparable.max_accuracy.mean - self.authors.max_accuracy.mean


def figures_of(records: Records) -> list[CellFigures]:
    """The two quantities of the paper's Figure 3, for every cell of the table."""
    known = authors_cells()
    runs: dict[tuple[str, str, float], dict[bool, Sequence[Record]]] = {}
    for cell, of_cell in records.items():
        if cell.row is not None:
            place = (cell.task, cell.row, cell.suspension)
            runs.setdefault(place, {})[cell.replays_hangs] = of_cell
    return [
        CellFigures(
            *place,
            drawn=_measured(runs[place].get(False, ())),
            replayed=_measured(runs[place].get(True, ())),
            authors=known.get((place[0], OURS if place[1] == STEERED else place[1], place[2])),
        )
        for place in sorted(runs, key=_in_order)
    ]


def _in_order(place: tuple[str, str, float]) -> tuple[int, float, int]:
    """By task, P and rule, each in the order of the paper."""
    task, row, suspension = place
    return (TASKS.index(task) if task in TASKS else len(TASKS)), suspension, ROWS.index(row)


def _measured(runs: Sequence[Record]) -> Measured | None:
    if not runs:
        return None
    return Measured(
        runs=len(runs),
        max_accuracy=spread(run.max_accuracy for run in runs),
        t90_seconds=spread(run.t90_seconds for run in runs),
        training_t90_seconds=spread(run.training_t90_seconds for run in runs),
        updates=spread(run.summary["updates"] for run in runs),
    )


@dataclass(frozen=True, slots=True)
class Contest:
    """Who is first in one task at one P; those who share a place are all named."""

    task: str
    suspension: float
    most_accurate: tuple[str, ...]
    fastest: tuple[str, ...]
    is_first: bool
    is_close: bool
    """AsyncFedED is first, or less than one standard deviation behind."""
    is_fastest: bool


def contests(
    figures: Mapping[tuple[str, str, float], tuple[Spread, Spread]],
) -> list[Contest]:
    """Compare the rules by (maximum accuracy, time to 90 %), cell by cell."""
    places = dict.fromkeys((task, suspension) for task, _, suspension in figures)
    found = []
    for task, suspension in places:
        rules = {
            rule: figures[task, rule, suspension]
            for rule in PAPER_RULES
            if (task, rule, suspension) in figures
        }
        if set(rules) != set(PAPER_RULES):
            continue
        most = max(rules.values(), key=lambda figures: figures[0].mean)[0]
        least = min(figures[1].mean for figures in rules.values())
        best = tuple(rule for rule, (accuracy, _) in rules.items() if accuracy.mean == most.mean)
        fastest = tuple(rule for rule, (_, t90) in rules.items() if t90.mean == least)
        ours = rules[OURS][0]
        found.append(
            Contest(
                task,
                suspension,
                most_accurate=best,
                fastest=fastest,
                is_first=best == (OURS,),
                is_close=most.mean - ours.mean <= max(most.sd, ours.sd),
                is_fastest=fastest == (OURS,),
            )
        )
    return found


def our_contests(figures: Sequence[CellFigures]) -> list[Contest]:
    """Who is first in our runs."""
    return contests(
        {(f.task, f.rule, f.suspension): (f.ours.max_accuracy, f.ours.t90_seconds) for f in figures}
    )


def authors_contests() -> list[Contest]:
    """Who is first in the authors' runs."""
    return contests(
        {key: (cell.max_accuracy, cell.t90_seconds) for key, cell in authors_cells().items()}
    )


def write_runs(path: Path, records: Iterable[Record]) -> None:
    """Write one line per run, in an order that does not depend on when it was made."""
    names = ("task", "rule", "suspension", "hang_draws", "seed", "seconds")
    rows = [
        {
            **{name: record.settings[name] for name in names},
            "hyperparameters": _short(record.settings["hyperparameters"]),
            **{name: record.settings[name] for name in TRAINING},
            "max_accuracy": record.max_accuracy,
            "final_accuracy": record.accuracy[-1],
            "t90_seconds": record.t90_seconds,
            "updates": record.summary["updates"],
            "log_sha256": record.summary["log_sha256"],
            "run": record.key,
        }
        for record in records
    ]
    rows.sort(key=lambda row: [str(value) for value in row.values()])
    write_rows(path, rows)


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows with a heading; of none, an empty file."""
    if rows:
        write_table(path, list(rows[0]), (list(row.values()) for row in rows))
    else:
        write_text(path, "")


def _short(hyperparameters: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in hyperparameters.items())
