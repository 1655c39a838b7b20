"""The words and tables of the report: what was found, and where it differs from the paper."""

from collections.abc import Mapping, Sequence
from math import isfinite

from asyncfeded.experiment.paper.griewank import Example
from asyncfeded.experiment.paper.plan import (
    CONSTANT_EPOCHS,
    USUAL_SUSPENSION,
    Cell,
    Plan,
    constant,
    study_cells_of,
)
from asyncfeded.experiment.paper.record import Record
from asyncfeded.experiment.paper.results import OURS, CellFigures, Contest, Records, spread
from asyncfeded.experiment.paper.sweeps import Ranked, Sweep, target_accuracy
from asyncfeded.experiment.tasks import PAPER_RULES
from asyncfeded.report.page import Grid, Section
from asyncfeded.report.tables import mean_and_spread

SOURCE = "The authors' figures are from the raw results published at github.com/Qiyr0/AsyncFedED."
ABOUT_CURVES = (
    "The line is the mean over seeds of curves smoothed over five evaluations, the band one "
    "standard deviation either way. Within a panel all rules meet the same initial model, data "
    "and devices."
)
ABOUT_SUSPENSION = (
    "Maximum accuracy is the highest of all evaluations of a run, as in the paper, without "
    "smoothing: it flatters rules that swing. Time to 90 % is that to 90 % of the run's own "
    "maximum, so a rule that stays low can look fast."
)
MOST_RANKED = 30


def lead(plan: Plan, runs: int, seeds: Sequence[int]) -> list[str]:
    """What this report is."""
    seconds = ", ".join(f"{task}: {plan.seconds_of(task):g}" for task in plan.tasks)
    return [
        f"{runs} runs on a virtual clock, scale {plan.scale}, {_range(seeds)} per cell (one in a "
        f"sweep), virtual seconds per run: {seconds}. {SOURCE} They ran 300 seconds in real time, "
        "on data, models and machines of their own, of which they give neither the clients nor "
        "the widths: regions and orders can be compared, not digits.",
    ]


def cell_rows(found: Sequence[CellFigures]) -> list[dict[str, object]]:
    """Every cell, as it goes into a file."""
    return [
        {
            "task": cell.task,
            "rule": cell.rule,
            "suspension": cell.suspension,
            "runs": cell.runs,
            "max_accuracy_mean": round(cell.max_accuracy.mean, 5),
            "max_accuracy_sd": round(cell.max_accuracy.sd, 5),
            "t90_seconds_mean": round(cell.t90_seconds.mean, 2),
            "t90_seconds_sd": round(cell.t90_seconds.sd, 2),
            "updates_mean": round(cell.updates.mean, 1),
            "authors_runs": cell.authors.runs if cell.authors else "",
            "authors_max_accuracy_mean": cell.authors.max_accuracy.mean if cell.authors else "",
            "authors_max_accuracy_sd": cell.authors.max_accuracy.sd if cell.authors else "",
            "authors_t90_seconds_mean": cell.authors.t90_seconds.mean if cell.authors else "",
            "authors_updates_mean": cell.authors.updates if cell.authors else "",
        }
        for cell in found
    ]


def first_places(
    ours: Sequence[Contest], theirs: Sequence[Contest], command: str
) -> Section | None:
    """Which rule is first in each cell, ours and the authors'."""
    if not ours:
        return None
    by_place = {(contest.task, contest.suspension): contest for contest in theirs}
    rows, bold = [], set()
    for line, contest in enumerate(ours):
        other = by_place.get((contest.task, contest.suspension))
        rows.append(
            (
                f"{contest.task}, P = {contest.suspension:g}",
                ", ".join(contest.most_accurate),
                "yes" if contest.is_first else ("within 1 sd" if contest.is_close else "no"),
                ", ".join(other.most_accurate) if other else "–",
                ", ".join(contest.fastest),
                ", ".join(other.fastest) if other else "–",
            )
        )
        if contest.is_close:
            bold.add((line, 2))
    counts = []
    for task in dict.fromkeys(contest.task for contest in ours):
        of_task = [contest for contest in ours if contest.task == task]
        authors = [contest for contest in theirs if contest.task == task]
        counts.append(
            f"{task}: first in {sum(c.is_first for c in of_task)} of {len(of_task)}, first or "
            f"within one standard deviation in {sum(c.is_close for c in of_task)}, fastest in "
            f"{sum(c.is_fastest for c in of_task)}"
            + (
                f" (the authors: first in {sum(c.is_first for c in authors)}, fastest in "
                f"{sum(c.is_fastest for c in authors)} of {len(authors)})."
                if authors
                else "."
            )
        )
    headings = ["cell", "most accurate", "AsyncFedED first?", "authors: most accurate"]
    headings += ["first to 90 %", "authors: first to 90 %"]
    grid = Grid("Who is first in each cell", headings, rows, frozenset(bold))
    return Section(
        "first-places",
        "Who is first",
        ["AsyncFedED by maximum accuracy. " + " ".join(counts)],
        grids=[grid],
        command=command,
        files=["tables/cells.csv", "results.csv"],
    )


def robustness(found: Sequence[CellFigures]) -> Section | None:
    """How much accuracy each rule loses from the lowest P to the highest."""
    rows = []
    for task in dict.fromkeys(cell.task for cell in found):
        rules_at: dict[float, set[str]] = {}
        for cell in found:
            if cell.task == task:
                rules_at.setdefault(cell.suspension, set()).add(cell.rule)
        whole = sorted(p for p, rules in rules_at.items() if rules == set(PAPER_RULES))
        if len(whole) < 2:
            continue
        low, high = whole[0], whole[-1]
        for rule in PAPER_RULES:
            ends = {
                cell.suspension: cell
                for cell in found
                if (cell.task, cell.rule) == (task, rule) and cell.suspension in (low, high)
            }
            first, last = ends[low], ends[high]
            theirs = "–"
            if first.authors and last.authors:
                loss = first.authors.max_accuracy.mean - last.authors.max_accuracy.mean
                theirs = f"{100 * loss:+.1f}"
            ours = 100 * (first.max_accuracy.mean - last.max_accuracy.mean)
            rows.append(
                (
                    f"{task}, {rule}",
                    f"P = {low:g} to {high:g}",
                    f"{first.max_accuracy.mean:.1%}",
                    f"{last.max_accuracy.mean:.1%}",
                    f"{ours:+.1f}",
                    theirs,
                )
            )
    if not rows:
        return None
    headings = ["rule", "", "at the lowest P", "at the highest", "loss, points", "authors' loss"]
    return Section(
        "robustness",
        "Robustness",
        ["Points of maximum accuracy that are lost as clients hang more often."],
        grids=[Grid("Loss of accuracy from the lowest P to the highest", headings, rows)],
    )


def differences(found: Sequence[CellFigures]) -> Section:
    """Every cell beside the authors', and why they differ."""
    headings = [
        "rule",
        "ours",
        "authors",
        "difference",
        "90 %: ours",
        "authors",
        "updates",
        "authors",
    ]
    grids = []
    for task in dict.fromkeys(cell.task for cell in found):
        for suspension in sorted({cell.suspension for cell in found if cell.task == task}):
            cells = [c for c in found if (c.task, c.suspension) == (task, suspension)]
            rows = [_beside(cell) for cell in cells]
            grids.append(Grid(f"{task}, P = {suspension:g}", headings, rows, folded=True))
    return Section("differences", "Ours beside the authors'", _why(found), grids=grids)


def _beside(cell: CellFigures) -> tuple[str, ...]:
    ours = mean_and_spread(
        100 * cell.max_accuracy.mean, 100 * cell.max_accuracy.sd, cell.runs, ".2f"
    )
    t90 = mean_and_spread(cell.t90_seconds.mean, cell.t90_seconds.sd, cell.runs, ".0f")
    theirs = ("–", "–", "–", "–")
    if cell.authors is not None and cell.difference is not None:
        accuracy, t90s = cell.authors.max_accuracy, cell.authors.t90_seconds
        theirs = (
            f"{100 * accuracy.mean:.2f} ± {100 * accuracy.sd:.2f} %",
            f"{100 * cell.difference:+.2f}",
            f"{t90s.mean:.0f} ± {t90s.sd:.0f} s",
            f"{cell.authors.updates:.0f}",
        )
    return (
        cell.rule,
        f"{ours} %",
        theirs[0],
        theirs[1],
        f"{t90} s",
        theirs[2],
        f"{cell.updates.mean:.0f}",
        theirs[3],
    )


WHY = {  # of the runs of 300 s in the project's experiments/paper
    "synthetic-1-1": (
        "Synthetic-1-1. Our clients have 600 examples per second of the authors' round times, so "
        "that the largest holds 41 % of the data; where it hangs, the others pull the model away. "
        "fedasync-hinge weighs by the lag in versions, which for slow clients is in the hundreds "
        "with b = 5, so their updates count for next to nothing; in the authors' results hinge and "
        "constant agree within their spread, which does not fit a lag in versions."
    ),
    "femnist": (
        "FEMNIST. Ten of LEAF's writers with about 157 images each and a narrow CNN; one "
        "test image is 0.6 points. With Eq. 8 as printed K could never rise at κ = 0.05 and γ̄ = 3, "
        "and in the authors' results it does, so K's fraction is carried here."
    ),
    "shakespeare": (
        "Shakespeare. With the paper's hyperparameters the staleness of our clients is mostly "
        "below γ̄ = 3, so that K rises round by round, and with a learning rate of 1 the model "
        "falls apart where many long rounds overlap, at low P; at P = 0.5 K rises as high, and the "
        "model holds. In the authors' runs K fell to 1 at once and climbed by 1 or 2 at a time."
    ),
}


def _why(found: Sequence[CellFigures]) -> list[str]:
    """Where we differ most, and what is known of the reasons."""
    paragraphs = []
    for task in dict.fromkeys(cell.task for cell in found):
        known = [c for c in found if c.task == task and c.difference is not None]
        if known:
            widest = max(known, key=lambda c: abs(c.difference or 0.0))
            mean = sum(abs(c.difference or 0.0) for c in known) / len(known)
            paragraphs.append(
                f"{task}: {_count(len(known), 'cell')}, {100 * mean:.1f} points apart on average; "
                f"furthest {widest.rule} at P = {widest.suspension:g} "
                f"({100 * (widest.difference or 0.0):+.1f} points)."
            )
        if task in WHY:
            paragraphs.append(f"{WHY[task]} (Seen in runs of 300 s.)")
    return paragraphs


def about_griewank(shown: Sequence[Example]) -> list[str]:
    """What each rule makes of the four updates."""
    sentences = [
        "Four clients start from the same version (the coloured arrows are their updates) and "
        "arrive one after another, when fast clients have moved the model to and fro (black)."
    ]
    for example in shown:
        lags = ", ".join(str(arrival.lag) for arrival in example.arrivals)
        weights = ", ".join(f"{arrival.weight:.0%}" for arrival in example.arrivals)
        stale = ", ".join(f"{arrival.distance_staleness:.2f}" for arrival in example.arrivals)
        last = example.arrivals[-1]
        sentences.append(
            f"{example.rule}: lags {lags}; staleness by distance {stale}; weights {weights} "
            f"of a fresh update's. The last update takes the loss from {last.loss_before:.3f} to "
            f"{last.loss_after:.3f}."
        )
    return sentences


def about_epochs(records: Records, plan: Plan) -> list[str]:
    """What adaptive K is worth at equal virtual time."""
    sentences = []
    for task in plan.tasks:
        adaptive = records.get(Cell(task, OURS, USUAL_SUSPENSION))
        fixed = {
            k: records[cell]
            for k in CONSTANT_EPOCHS
            if (cell := Cell(task, OURS, USUAL_SUSPENSION, constant(k))) in records
        }
        if not adaptive or not fixed:
            continue
        best = max(fixed, key=lambda k: _max(fixed[k]))
        courses = {"adaptive K": adaptive, f"K = {best}, the best constant one": fixed[best]}
        if 10 in fixed:
            courses["K = 10, where it starts"] = fixed[10]
        said = (f"{name}: {_max(c):.1%}, {_mean(c):.1%} on average" for name, c in courses.items())
        sentences.append(f"{task}, maximum and average over the run: {'; '.join(said)}.")
    return sentences


def _max(runs: Sequence[Record]) -> float:
    return spread(run.max_accuracy for run in runs).mean


def _mean(runs: Sequence[Record]) -> float:
    return spread(sum(run.accuracy) / len(run.accuracy) for run in runs).mean


def study(records: Records, plan: Plan) -> Section | None:
    """The variants that the paper leaves open, beside what it prints."""
    grids = []
    headings = [
        "variant",
        "max accuracy",
        "mean of the run",
        "at the end",
        "s to target",
        "updates",
    ]
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
                    f"{_max(runs):.1%}",
                    f"{_mean(runs):.1%}",
                    f"{spread(run.accuracy[-1] for run in runs).mean:.1%}",
                    f"{_seconds(spread(reached).mean)}" if reached else "never",
                    f"{len(reached)} of {len(runs)}",
                    f"{spread(run.summary['updates'] for run in runs).mean:.0f}",
                )
            )
        if rows:
            caption = f"{task}, P = {USUAL_SUSPENSION:g}; target {target_accuracy(task):.1%}"
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
    table: int, swept: Sweep, rankings: Mapping[str, Sequence[Ranked]]
) -> tuple[Section, list[dict[str, object]]]:
    """A table of the paper: its hyperparameters, ranked both ways; and the rows for a file."""
    names = list(swept.ranges)
    grids, files, paragraphs = [], [], []
    for task, ranking in rankings.items():
        chosen = swept.selected(task)
        rows: list[tuple[str, ...]] = []
        bold: set[tuple[int, int]] = set()
        for index, row in enumerate(ranking):
            rank = sum(other.max_accuracy > row.max_accuracy for other in ranking)
            place = sum(other.seconds_to_target < row.seconds_to_target for other in ranking)
            files.append(
                {
                    "task": task,
                    **row.point,
                    "max_accuracy": row.max_accuracy,
                    "seconds_to_target": row.seconds_to_target,
                    "rank_by_accuracy": rank + 1,
                    "rank_by_time": place + 1,
                    "papers_choice": row.point == chosen,
                }
            )
            if row.point == chosen:
                bold = bold | {(len(rows), column) for column in range(len(names) + 4)}
                by_time = f"and number {place + 1} by time to {target_accuracy(task):.1%}"
                if not isfinite(row.seconds_to_target):
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
                        f"{place + 1}",
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
        files=[f"tables/table-{table}.csv", "sweeps.db"],
    )
    return section, files


def _seconds(value: float) -> str:
    return "never" if value == float("inf") else f"{value:.0f} s"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return _count(high, "seed") if low == high else f"{low} to {high} seeds"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
