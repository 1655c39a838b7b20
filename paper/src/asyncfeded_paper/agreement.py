"""How near our results come to the authors': the first thing that the report says."""

from collections.abc import Sequence

from asyncfeded.experiment import PAPER_RULES
from asyncfeded_paper.charts import Chart, Matrix, Panel
from asyncfeded_paper.page import Grid
from asyncfeded_paper.results import ROWS, CellFigures, Contest
from asyncfeded_paper.scope import SUSPENSIONS, TASKS

NEAR_POINTS = {"synthetic-1-1": 1.5, "femnist": 4.0, "shakespeare": 4.0}
"""Within how many points of the authors' maximum accuracy ours agrees with it."""
SHOWN_POINTS = 10.0
"""The difference that has the full colour."""
CELLS = len(TASKS) * len(SUSPENSIONS)


def chart(found: Sequence[CellFigures]) -> Chart | None:
    """Ours minus theirs in points, a panel per task."""
    panels = []
    for task in TASKS:
        known = {(c.rule, c.suspension): c.difference for c in found if c.task == task}
        if any(difference is not None for difference in known.values()):
            suspensions = sorted({suspension for _, suspension in known})
            rows = [row for row in ROWS if any(rule == row for rule, _ in known)]
            matrix = Matrix(
                rows,
                [f"{suspension:g}" for suspension in suspensions],
                [[_points(known.get((row, p))) for p in suspensions] for row in rows],
                SHOWN_POINTS,
            )
            panels.append(Panel(task, "P", "", [], matrix=matrix))
    title = "Maximum accuracy: ours minus the authors', in points"
    return Chart(title, panels, columns=1) if panels else None


def in_words(found: Sequence[CellFigures], ours: Sequence[Contest]) -> list[str]:
    """How many cells agree; AsyncFedED squared and carried does not count."""
    found = [cell for cell in found if cell.rule in PAPER_RULES]
    places = {(cell.task, cell.suspension) for cell in found}
    whole = [place for place in places if _is_whole(found, *place)]
    near = [cell for cell in found if is_near(cell)]
    agreeing = [
        (task, p)
        for task, p in whole
        if all(is_near(cell) for cell in found if (cell.task, cell.suspension) == (task, p))
    ]
    close = sum(contest.is_close for contest in ours)
    within = ", ".join(f"{task} {points:g}" for task, points in NEAR_POINTS.items())
    return [
        f"{len(whole)} of the paper's {CELLS} cells (a task and a P) were run with all five rules. "
        f"In {len(agreeing)} of them the maximum accuracy of every rule is near the authors', "
        f"that is within these points: {within}. "
        f"Rule by rule it is near in {len(near)} of {len(found)} cells. "
        f"AsyncFedED is first in maximum accuracy, or within one standard deviation of first, in "
        f"{close} of {len(ours)}.",
        "The difference is that of the run with the authors' own hangs where there is one.",
    ]


def apart(found: Sequence[CellFigures]) -> Grid:
    """The mean absolute difference in points, by task and rule."""
    rows = []
    for task in TASKS:
        of_task = [c for c in found if c.task == task and c.difference is not None]
        if of_task:
            by_row = [[c for c in of_task if c.rule == row] for row in ROWS]
            of_rules = [c for c in of_task if c.rule in PAPER_RULES]
            rows.append((task, *map(_mean_apart, by_row), _mean_apart(of_rules)))
    caption = "Mean absolute difference of the maximum accuracy from the authors', in points"
    return Grid(caption, ["task", *ROWS, "all five rules"], rows)


def is_near(cell: CellFigures) -> bool:
    """Whether our maximum agrees with the authors'."""
    points = _points(cell.difference)
    return points is not None and abs(points) <= NEAR_POINTS.get(cell.task, 0.0)


def _is_whole(found: Sequence[CellFigures], task: str, suspension: float) -> bool:
    rules = {cell.rule for cell in found if (cell.task, cell.suspension) == (task, suspension)}
    return rules >= set(PAPER_RULES)


def _mean_apart(cells: Sequence[CellFigures]) -> str:
    points = [abs(p) for cell in cells if (p := _points(cell.difference)) is not None]
    return f"{sum(points) / len(points):.1f}" if points else "–"


def _points(difference: float | None) -> float | None:
    return None if difference is None else 100 * difference
