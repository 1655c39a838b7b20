"""Other hyperparameters and other readings of the paper, as tables of the report."""

from collections.abc import Mapping, Sequence
from math import isfinite

from asyncfeded.report import spread
from asyncfeded_paper.page import Grid, Section
from asyncfeded_paper.plan import Plan, study_cells_of
from asyncfeded_paper.results import Records, mean_accuracy, mean_maximum
from asyncfeded_paper.scope import USUAL_SUSPENSION
from asyncfeded_paper.sweeps import Ranked, SweptRule, target_accuracy

MOST_RANKED = 30


def study(records: Records, plan: Plan) -> Section | None:
    """The variants that the paper leaves open, beside what it prints."""
    grids = []
    headings = ["variant", "max accuracy", "mean of the run", "at the end"]
    headings += ["s to target", "seeds that reached it", "updates"]
    for task in plan.tasks:
        rows = []
        shown: set[str] = set()
        target = target_accuracy(task)
        for name, cell in study_cells_of(plan, task).items():
            runs = records.get(cell, ())
            if not runs or runs[0].key in shown:  # a variant that the task has anyway
                continue
            shown.add(runs[0].key)
            reached = [s for run in runs if isfinite(s := run.seconds_to(target))]
            rows.append(
                (
                    name,
                    f"{mean_maximum(runs):.1%}",
                    f"{mean_accuracy(runs):.1%}",
                    f"{spread(run.accuracy[-1] for run in runs).mean:.1%}",
                    _seconds(spread(reached).mean) if reached else "never",
                    f"{len(reached)} of {len(runs)}",
                    f"{spread(run.summary['updates'] for run in runs).mean:.0f}",
                )
            )
        if rows:
            caption = f"{task}, P = {USUAL_SUSPENSION:g}; target {target:.1%}"
            grids.append(Grid(caption, headings, rows))
    if not grids:
        return None
    text = (
        "AsyncFedED as in the figures and with something changed: how K is rounded, what it "
        "counts, how it is bounded, how the clients train. Variants that a task has anyway are "
        "left out."
    )
    return Section("study", "What the paper leaves open", [text], grids=grids)


def sweep(
    table: int, swept: SweptRule, rankings: Mapping[str, Sequence[Ranked]]
) -> tuple[Section, list[dict[str, object]]]:
    """A table of the paper: its hyperparameters, ranked both ways; and the rows for a file."""
    names = list(swept.ranges)
    grids, paragraphs = [], []
    files: list[dict[str, object]] = []
    for task, ranking in rankings.items():
        chosen = swept.selected(task)
        rows: list[tuple[str, ...]] = []
        bold: set[tuple[int, int]] = set()
        for index, row in enumerate(ranking):
            rank = sum(other.max_accuracy > row.max_accuracy for other in ranking)
            place = _place_by_time(row, ranking)
            files.append(
                {
                    "task": task,
                    **row.point,
                    "max_accuracy": row.max_accuracy,
                    "seconds_to_target": row.seconds_to_target,
                    "rank_by_accuracy": rank + 1,
                    "rank_by_time": place,
                    "papers_choice": row.point == chosen,
                }
            )
            if row.point == chosen:
                bold = bold | {(len(rows), column) for column in range(len(names) + 4)}
                by_time = f"and number {place} by time to {target_accuracy(task):.1%}"
                if place is None:
                    by_time = f"and does not reach {target_accuracy(task):.1%}"
                paragraphs.append(
                    f"{task}: the paper's choice is number {rank + 1} of {len(ranking)} by maximum "
                    f"accuracy {by_time}."
                )
            if index < MOST_RANKED or row.point == chosen:
                rows.append(
                    (
                        f"{rank + 1}",
                        *(f"{row.point[name]:g}" for name in names),
                        f"{row.max_accuracy:.2%}",
                        _seconds(row.seconds_to_target),
                        "–" if place is None else f"{place}",
                    )
                )
        headings = ["rank", *names, "max accuracy", "s to target", "rank by time"]
        caption = f"{task}, {swept.rule}: {len(ranking)} points, one seed; bold: the paper's choice"
        grids.append(Grid(caption, headings, rows, frozenset(bold), folded=len(rows) > 12))
    title = f"Table {table}. {swept.rule}"
    section = Section(
        f"table-{table}",
        title,
        paragraphs,
        grids=grids,
        files=[f"tables/table-{table}.csv"],
    )
    return section, files


def _place_by_time(row: Ranked, ranking: Sequence[Ranked]) -> int | None:
    """From 1; None for one that never reaches the target."""
    if not isfinite(row.seconds_to_target):
        return None
    return 1 + sum(other.seconds_to_target < row.seconds_to_target for other in ranking)


def _seconds(value: float) -> str:
    return "never" if value == float("inf") else f"{value:.0f} s"
