"""What the paper shows, and which runs each figure and table is made from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from pathlib import Path

from asyncfeded import SettingError
from asyncfeded.experiment import PAPER_RULES, RunSettings, find_task, run_settings
from asyncfeded.simulation import PAPER_MACHINES
from asyncfeded_paper.scope import (
    CONSTANT_EPOCHS,
    FIGURES,
    SUSPENSIONS,
    TABLES,
    TASKS,
    USUAL_SUSPENSION,
    Scale,
)

OURS = PAPER_RULES[0]

Given = tuple[tuple[str, float | str], ...]
AUTHORS_HANGS: Given = (("hang_draws", "authors"),)
"""The hangs that the authors' clients had, instead of those of the seed: one run is enough."""

STEERED = "asyncfeded, squared and carried"
_SQUARED: Given = (("power", 2.0), ("rounding", "carry"))
STEERING: Mapping[str, Given] = {
    "synthetic-1-1": (*_SQUARED, ("gamma_bar", 5.0), ("kappa", 0.1)),
    "femnist": _SQUARED,
    "shakespeare": _SQUARED,
}
"""The reading of Eq. 6 to 8 that comes nearest to K in the authors' runs.

It is a row of its own, beside AsyncFedED as printed. paper/readings says how it was found.
"""

QUICK_SECONDS = {"synthetic-1-1": 300.0, "femnist": 60.0, "shakespeare": 120.0}
FULL_SECONDS = 300.0
QUICK_SUSPENSIONS = (0.0, 0.1, 0.5, 0.9)
FULL_SEEDS = 5
MOST_SEEDS = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """Which part of the evaluation is made, and how thoroughly.

    `seconds`, `seeds` and `suspensions` that were not given follow from the scale.
    """

    scale: Scale = "quick"
    tasks: tuple[str, ...] = TASKS
    figures: tuple[int, ...] = FIGURES
    tables: tuple[int, ...] = TABLES
    seeds: int | None = None
    seconds: float | None = None
    suspensions: tuple[float, ...] = ()
    study: bool = True
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        for name, given, known in (
            ("figure", self.figures, FIGURES),
            ("table", self.tables, TABLES),
        ):
            for number in given:
                if number not in known:
                    raise SettingError(
                        f"{name} must be from {known[0]} to {known[-1]}; given {number}"
                    )
        for task in self.tasks:
            find_task(task)
        if not 1 <= self.num_seeds <= MOST_SEEDS:
            raise SettingError(f"seeds must be from 1 to {MOST_SEEDS}; given {self.seeds}")
        if self.seconds is not None and not (isfinite(self.seconds) and self.seconds > 0):
            raise SettingError(f"seconds must be above 0; given {self.seconds}")
        for suspension in self.suspensions:
            if not 0 <= suspension < 1:
                raise SettingError(f"suspension must be at least 0 and below 1; given {suspension}")
        if self.suspensions and self.figures != FIGURES:
            for missing in set(self._asked()) - set(self.suspensions):
                raise SettingError(
                    f"figure {figure_of(missing)} shows P = {missing:g}, which is not among the "
                    f"values of suspension; given {', '.join(f'{p:g}' for p in self.suspensions)}"
                )

    @property
    def num_seeds(self) -> int:
        """Over how many seeds a cell is averaged."""
        if self.seeds is not None:
            return self.seeds
        return FULL_SEEDS if self.scale == "full" else 1

    def seconds_of(self, task: str) -> float:
        """How many virtual seconds a run of this task has."""
        if self.seconds is not None:
            return self.seconds
        if self.scale == "full":
            return FULL_SECONDS
        return QUICK_SECONDS.get(task.removesuffix("-standin"), FULL_SECONDS)

    @property
    def tried_tasks(self) -> tuple[str, ...]:
        """The tasks of the sweeps and the study; in a quick evaluation the quickest alone."""
        if self.scale == "quick" and TASKS[0] in self.tasks:
            return TASKS[:1]
        return self.tasks

    def shown_suspensions(self) -> tuple[float, ...]:
        """The values of P that are run for Figures 3 and 5 to 14."""
        if self.suspensions:
            return self.suspensions
        if self.scale == "full":
            return SUSPENSIONS
        asked = () if self.figures == FIGURES else self._asked()
        return tuple(sorted({*QUICK_SUSPENSIONS, *asked}))

    def _asked(self) -> list[float]:
        return [p for p in SUSPENSIONS if figure_of(p) in self.figures]


@dataclass(frozen=True, slots=True)
class Cell:
    """A task, a rule with its hyperparameters, and P: what is averaged over seeds."""

    task: str
    rule: str
    suspension: float
    given: Given = field(default=())

    @property
    def replays_hangs(self) -> bool:
        """Whether the hangs are those that the authors' clients had."""
        return set(AUTHORS_HANGS) <= set(self.given)

    @property
    def row(self) -> str | None:
        """The row of the paper's table that this cell is in: a rule as printed, or `STEERED`."""
        given = tuple(pair for pair in self.given if pair not in AUTHORS_HANGS)
        if not given:
            return self.rule
        return STEERED if given == STEERING.get(self.task) and self.rule == OURS else None

    @property
    def epochs(self) -> int | None:
        """K, if it is kept constant."""
        given = dict(self.given)
        return int(given["initial_epochs"]) if given.get("kappa") == 0.0 else None


def settings_of(plan: Plan, cell: Cell, seed: int) -> RunSettings:
    """The run of a cell with one seed.

    Only the rule differs within a task, P and seed: the initial model, the data, the mini-batches
    of a client's n-th round and the devices' draws for it are the same. The start-up is the
    authors', whose times to 90 % have it in them.
    """
    return run_settings(
        {
            "task": cell.task,
            "rule": cell.rule,
            "suspension": cell.suspension,
            "seed": seed,
            "seconds": plan.seconds_of(cell.task),
            "start_up": PAPER_MACHINES[find_task(cell.task).paper_devices].start_up_seconds,
            **({} if plan.data_dir is None else {"data_dir": plan.data_dir}),
            **dict(cell.given),
        }
    )


def cells_over_time(plan: Plan) -> list[Cell]:
    """The cells of Figures 2, 3 and 5 to 14: every rule for every P.

    First with the authors' hangs, then with those of the seeds.
    """
    wanted = set[float]()
    if 3 in plan.figures:
        wanted.update(plan.shown_suspensions())
    if 2 in plan.figures:
        wanted.add(USUAL_SUSPENSION)
    numbered = {figure_of(p): p for p in plan.shown_suspensions()}
    wanted.update(p for number, p in numbered.items() if number in plan.figures)
    return [
        cell
        for hangs, task, suspension in product((AUTHORS_HANGS, ()), plan.tasks, sorted(wanted))
        if not (hangs and suspension == 0)  # nobody hangs there
        for cell in rows_at(task, suspension, hangs)
    ]


def rows_at(task: str, suspension: float, hangs: Given = ()) -> list[Cell]:
    """Every rule at one P, and AsyncFedED squared and carried on the paper's tasks."""
    rows = [Cell(task, rule, suspension, hangs) for rule in PAPER_RULES]
    if task in STEERING:
        rows.append(Cell(task, OURS, suspension, hangs + STEERING[task]))
    return rows


def figure_of(suspension: float) -> int | None:
    """Which of Figures 5 to 14 shows this P."""
    tenths = round(10 * suspension)
    return 5 + tenths if abs(10 * suspension - tenths) < 1e-9 and 0 <= tenths <= 9 else None


def cells_of_constant_epochs(plan: Plan) -> list[Cell]:
    """The cells of Figure 4: adaptive K beside constant ones."""
    if 4 not in plan.figures:
        return []
    return [
        Cell(task, "asyncfeded", USUAL_SUSPENSION, given)
        for task, given in product(plan.tasks, [(), *map(constant, CONSTANT_EPOCHS)])
    ]


def constant(epochs: int) -> Given:
    """The hyperparameters that keep K where it is."""
    return ("kappa", 0.0), ("initial_epochs", epochs)


STUDIES: Mapping[str, Given] = {
    "as in the figures": (),
    "K rounded down (Eq. 8 as printed)": (("rounding", "floor"),),
    "K's fraction carried": (("rounding", "carry"),),
    "K at most 20": (("max_epochs", 20),),
    "K at most 10": (("max_epochs", 10),),
    "K = 10": constant(10),
    "K counts mini-batches": (("unit", "steps"),),
    "K counts mini-batches, from 50": (("unit", "steps"), ("initial_epochs", 50)),
    "decay per epoch of a round": (("decay_per", "epoch"),),
    "no decay": (("decay", 1.0),),
    "momentum 0": (("momentum", 0.0),),
}
"""AsyncFedED as it is, and with something changed."""


def study_cells_of(plan: Plan, task: str) -> dict[str, Cell]:
    """The variants of AsyncFedED on one task."""
    if not plan.study or task not in plan.tried_tasks:
        return {}
    return {
        name: Cell(task, "asyncfeded", USUAL_SUSPENSION, given) for name, given in STUDIES.items()
    }


def cells_of_study(plan: Plan) -> list[Cell]:
    """The cells of the study."""
    return [cell for task in plan.tasks for cell in study_cells_of(plan, task).values()]


def seeds_of(plan: Plan, cell: Cell) -> range:
    """The seeds of a cell: with the authors' hangs, which are always the same, only the first."""
    return range(1 if cell.replays_hangs else plan.num_seeds)


def runs_of(plan: Plan, cells: Iterable[Cell]) -> list[RunSettings]:
    """Every cell with every seed, seed by seed: early results cover all cells."""
    once = dict.fromkeys(cells)
    return [
        settings_of(plan, cell, seed)
        for seed in range(plan.num_seeds)
        for cell in once
        if seed in seeds_of(plan, cell)
    ]
