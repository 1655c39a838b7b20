"""Our results beside the authors': who is first, who holds out, and where we differ."""

from collections.abc import Sequence

from asyncfeded.experiment import PAPER_RULES
from asyncfeded.report import mean_and_spread
from asyncfeded_paper.page import Grid, Section
from asyncfeded_paper.results import CellFigures, Contest, Measured


def cell_rows(found: Sequence[CellFigures]) -> list[dict[str, object]]:
    """Every cell, as it goes into a file."""
    return [
        {
            "task": cell.task,
            "rule": cell.rule,
            "suspension": cell.suspension,
            **_columns("", cell.drawn),
            **_columns("authors_hangs_", cell.replayed),
            "authors_runs": cell.authors.runs if cell.authors else "",
            "authors_max_accuracy_mean": cell.authors.max_accuracy.mean if cell.authors else "",
            "authors_max_accuracy_sd": cell.authors.max_accuracy.sd if cell.authors else "",
            "authors_t90_seconds_mean": cell.authors.t90_seconds.mean if cell.authors else "",
            "authors_updates_mean": cell.authors.updates if cell.authors else "",
            "difference": "" if cell.difference is None else round(cell.difference, 5),
        }
        for cell in found
    ]


def _columns(prefix: str, measured: Measured | None) -> dict[str, object]:
    if measured is None:
        names = ("max_accuracy_mean", "max_accuracy_sd", "t90_seconds_mean", "t90_seconds_sd")
        return {f"{prefix}{name}": "" for name in ("runs", *names, "updates_mean")}
    return {
        f"{prefix}runs": measured.runs,
        f"{prefix}max_accuracy_mean": round(measured.max_accuracy.mean, 5),
        f"{prefix}max_accuracy_sd": round(measured.max_accuracy.sd, 5),
        f"{prefix}t90_seconds_mean": round(measured.t90_seconds.mean, 2),
        f"{prefix}t90_seconds_sd": round(measured.t90_seconds.sd, 2),
        f"{prefix}updates_mean": round(measured.updates.mean, 1),
    }


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
        whole = sorted(p for p, rules in rules_at.items() if rules >= set(PAPER_RULES))
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
            ours = 100 * (first.ours.max_accuracy.mean - last.ours.max_accuracy.mean)
            rows.append(
                (
                    f"{task}, {rule}",
                    f"P = {low:g} to {high:g}",
                    f"{first.ours.max_accuracy.mean:.1%}",
                    f"{last.ours.max_accuracy.mean:.1%}",
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
    """Every cell beside the authors'."""
    headings = ["rule", "ours", "ours, authors' hangs", "authors", "difference"]
    headings += ["90 %: ours", "authors' hangs", "without start-up", "authors", "updates"]
    headings += ["authors' hangs", "authors"]
    grids = []
    for task in dict.fromkeys(cell.task for cell in found):
        for suspension in sorted({cell.suspension for cell in found if cell.task == task}):
            cells = [c for c in found if (c.task, c.suspension) == (task, suspension)]
            rows = [_beside(cell) for cell in cells]
            grids.append(Grid(f"{task}, P = {suspension:g}", headings, rows, folded=True))
    return Section("differences", "Ours beside the authors'", _furthest(found), grids=grids)


def _beside(cell: CellFigures) -> tuple[str, ...]:
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
        _accuracy(cell.drawn),
        _accuracy(cell.replayed),
        theirs[0],
        theirs[1],
        _t90(cell.drawn),
        _t90(cell.replayed),
        f"{cell.comparable.training_t90_seconds.mean:.0f} s",
        theirs[2],
        _updates(cell.drawn),
        _updates(cell.replayed),
        theirs[3],
    )


def _accuracy(found: Measured | None) -> str:
    if found is None:
        return "–"
    accuracy = found.max_accuracy
    return f"{mean_and_spread(100 * accuracy.mean, 100 * accuracy.sd, found.runs, '.2f')} %"


def _t90(found: Measured | None) -> str:
    if found is None:
        return "–"
    return f"{mean_and_spread(found.t90_seconds.mean, found.t90_seconds.sd, found.runs, '.0f')} s"


def _updates(found: Measured | None) -> str:
    return "–" if found is None else f"{found.updates.mean:.0f}"


def _furthest(found: Sequence[CellFigures]) -> list[str]:
    """Where we differ most."""
    paragraphs = []
    for task in dict.fromkeys(cell.task for cell in found):
        known = [c for c in found if c.task == task and c.difference is not None]
        if known:
            widest = max(known, key=lambda c: abs(c.difference or 0.0))
            mean = sum(abs(c.difference or 0.0) for c in known) / len(known)
            paragraphs.append(
                f"{task}: {len(known)} cells, {100 * mean:.1f} points apart on average; "
                f"furthest {widest.rule} at P = {widest.suspension:g} "
                f"({100 * (widest.difference or 0.0):+.1f} points)."
            )
    return paragraphs
