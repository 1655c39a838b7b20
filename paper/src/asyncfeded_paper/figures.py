"""The paper's figures as charts, from the runs that there are."""

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from asyncfeded.experiment import PAPER_RULES, find_task
from asyncfeded.report import COLOURS, Spread, deviation, smoothed
from asyncfeded_paper.authors import authors_curves
from asyncfeded_paper.charts import Chart, Line, Panel
from asyncfeded_paper.plan import AUTHORS_HANGS, OURS, Cell, Given, Plan, cells_of_constant_epochs
from asyncfeded_paper.record import STEERING_BINS, Record
from asyncfeded_paper.results import CellFigures, Records
from asyncfeded_paper.scope import CONSTANT_EPOCHS, USUAL_SUSPENSION

RULE_COLOURS = dict(zip(PAPER_RULES, COLOURS, strict=False))
CLIENT_COLOURS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"),
)
DIGITS = 4
TIME = "virtual time (s)"
ACCURACY = "test accuracy"


def over_time(records: Records, plan: Plan, suspension: float, title: str) -> Chart | None:
    """Figures 2 and 5 to 14: accuracy over time at one P, a panel per task."""
    panels = []
    for task in plan.tasks:
        lines = [
            _course(rule, runs, RULE_COLOURS[rule])
            for rule in PAPER_RULES
            if (runs := _either(records, task, rule, suspension, first=()))
        ]
        if lines:
            panels.append(Panel(find_task(task).title, TIME, ACCURACY, lines, as_percent=True))
    return Chart(title, panels) if panels else None


def _either(
    records: Records, task: str, rule: str, suspension: float, first: Given
) -> Sequence[Record]:
    """The runs with these hangs, drawn or the authors'; where there are none, with the others."""
    other = () if first else AUTHORS_HANGS
    cells = (Cell(task, rule, suspension, hangs) for hangs in (first, other))
    return next((records[cell] for cell in cells if cell in records), ())


def beside_curves(records: Records, plan: Plan, suspension: float) -> Chart | None:
    """Accuracy and loss over time beside the authors', with their hangs where there are such runs.

    The authors' curves are dashed.
    """
    rows: list[list[Panel]] = [[], []]
    for task in plan.tasks:
        accuracy, loss = list[Line](), list[Line]()
        for rule in PAPER_RULES:
            runs = _either(records, task, rule, suspension, first=AUTHORS_HANGS)
            theirs = authors_curves().get((task, rule, suspension))
            if not runs or theirs is None:
                continue
            colour = RULE_COLOURS[rule]
            name = f"{rule}, authors"
            losses = [[inf if value is None else value for value in run.loss] for run in runs]
            accuracy += [
                _course(rule, runs, colour),
                Line(name, theirs.seconds, theirs.accuracy, colour, dashed=True, listed=False),
            ]
            loss += [
                Line(rule, runs[0].seconds, _finite(np.mean(losses, axis=0)), colour),
                Line(name, theirs.seconds, theirs.loss, colour, dashed=True, listed=False),
            ]
        if accuracy:
            title = find_task(task).title
            rows[0].append(Panel(title, TIME, ACCURACY, accuracy, as_percent=True))
            rows[1].append(Panel(f"{title}: loss", TIME, "test loss", loss, logarithmic=True))
    if not rows[0]:
        return None
    title = f"P = {suspension:g}: ours, and dashed the authors'"
    return Chart(title, rows[0] + rows[1], columns=len(rows[0]))


def _finite(values: np.ndarray) -> list[float | None]:
    return [round(float(value), DIGITS) if np.isfinite(value) else None for value in values]


def over_suspension(figures: Sequence[CellFigures], plan: Plan) -> Chart | None:
    """Figure 3: maximum accuracy, and time to 90 % of it, over P; dashed the authors'."""
    panels = [
        *_suspension_panels(figures, plan, "maximum accuracy", _max_accuracies, as_percent=True),
        *_suspension_panels(figures, plan, "s to 90 % of maximum", _t90s, as_percent=False),
    ]
    if not panels:
        return None
    title = "Figure 3. Maximum accuracy, and time to 90 % of it, over P (dashed: the authors')"
    return Chart(title, panels, columns=len(panels) // 2)


Pair = tuple[Spread, Spread | None]


def _max_accuracies(cell: CellFigures) -> Pair:
    return cell.ours.max_accuracy, None if cell.authors is None else cell.authors.max_accuracy


def _t90s(cell: CellFigures) -> Pair:
    return cell.ours.t90_seconds, None if cell.authors is None else cell.authors.t90_seconds


def _suspension_panels(
    figures: Sequence[CellFigures],
    plan: Plan,
    label: str,
    quantity: Callable[[CellFigures], Pair],
    as_percent: bool,
) -> list[Panel]:
    panels = []
    for task in plan.tasks:
        lines = []
        for rule in PAPER_RULES:
            cells = sorted(
                (f for f in figures if f.task == task and f.rule == rule),
                key=lambda f: f.suspension,
            )
            if not cells:
                continue
            colour = RULE_COLOURS[rule]
            xs = [cell.suspension for cell in cells]
            ours, theirs = zip(*map(quantity, cells), strict=True)
            means = np.array([value.mean for value in ours])
            low, high = _band(
                means, np.array([value.sd for value in ours]), 1.0 if as_percent else inf
            )
            lines.append(Line(rule, xs, means.tolist(), colour, low=low, high=high, marked=True))
            known = [(x, value.mean) for x, value in zip(xs, theirs, strict=True) if value]
            if known:
                x, y = zip(*known, strict=True)
                name = f"{rule}, authors"
                lines.append(Line(name, x, y, colour, dashed=True, listed=False))
        if lines:
            panels.append(Panel(find_task(task).title, "P", label, lines, as_percent=as_percent))
    return panels


def constant_epochs(records: Records, plan: Plan) -> Chart | None:
    """Figure 4: adaptive K beside constant ones."""
    names: dict[int | None, str] = {None: "adaptive K"}
    names |= {k: f"K = {k}" for k in CONSTANT_EPOCHS}
    colours = dict(zip(names, COLOURS, strict=False))
    panels = []
    for task in plan.tasks:
        cells = [cell for cell in cells_of_constant_epochs(plan) if cell.task == task]
        lines = [
            _course(names[cell.epochs], records[cell], colours[cell.epochs])
            for cell in cells
            if cell in records
        ]
        if lines:
            panels.append(Panel(find_task(task).title, TIME, ACCURACY, lines, as_percent=True))
    title = f"Figure 4. AsyncFedED with adaptive and constant K, P = {USUAL_SUSPENSION:g}"
    return Chart(title, panels) if panels else None


def steering(records: Records, plan: Plan) -> Chart | None:
    """What the paper lacks: K and staleness of each client over time, of one seed."""
    panels = []
    for quantity, label, logarithmic in (
        ("epochs", "K", False),
        ("staleness", "staleness γ", True),
    ):
        for task in plan.tasks:
            runs = _either(records, task, OURS, USUAL_SUSPENSION, first=())
            if not runs:
                continue
            lines = [
                _heard(client, _middles(runs[0]), values[quantity], colour)
                for (client, values), colour in zip(
                    runs[0].steering.items(), CLIENT_COLOURS, strict=False
                )
            ]
            title = f"{find_task(task).title}: {label} of each client"
            panels.append(Panel(title, TIME, label, lines, logarithmic=logarithmic))
    if not panels:
        return None
    title = f"K and staleness of each client under AsyncFedED, P = {USUAL_SUSPENSION:g}, one seed"
    return Chart(title, panels, columns=len(panels) // 2)


def _heard(name: str, x: Sequence[float], y: Sequence[float | None], colour: str) -> Line:
    """A client's course through the parts of the run in which it was heard."""
    known = [(at, value) for at, value in zip(x, y, strict=True) if value is not None]
    return Line(name, [at for at, _ in known], [value for _, value in known], colour)


def _middles(record: Record) -> list[float]:
    seconds = float(record.settings["seconds"])
    return [round((part + 0.5) * seconds / STEERING_BINS, DIGITS) for part in range(STEERING_BINS)]


def _course(name: str, runs: Sequence[Record], colour: str) -> Line:
    """The mean over seeds, each run smoothed over five evaluations, and one deviation each way."""
    smooth = np.array([smoothed(np.array(run.accuracy), 5) for run in runs])
    mean = smooth.mean(axis=0)
    low, high = _band(mean, deviation(smooth), 1.0) if len(runs) > 1 else (None, None)
    return Line(name, runs[0].seconds, _rounded(mean), colour, low=low, high=high)


def _band(mean: np.ndarray, sd: np.ndarray, most: float) -> tuple[list[float], list[float]]:
    """One deviation either way, as far as there can be such values: from 0 to `most`."""
    low, high = np.maximum(mean - sd, 0.0), np.minimum(mean + sd, most)
    return _rounded(low), _rounded(high)


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), DIGITS) for value in values]
