"""The evaluation from its plan to its report: which runs, and what is written of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from asyncfeded import FileError
from asyncfeded.experiment import resolve
from asyncfeded.store import RunStore
from asyncfeded_paper import (
    agreement,
    beside_authors,
    figures,
    griewank,
    variants,
    words,
)
from asyncfeded_paper.charts import Chart, save
from asyncfeded_paper.datasets import digest_for
from asyncfeded_paper.markdown import write_markdown
from asyncfeded_paper.page import Section, write_page
from asyncfeded_paper.plan import (
    Cell,
    Plan,
    cells_of_constant_epochs,
    cells_of_study,
    cells_over_time,
    figure_of,
    runs_of,
)
from asyncfeded_paper.record import Record
from asyncfeded_paper.results import (
    CellFigures,
    Find,
    Records,
    authors_contests,
    figures_of,
    find_records,
    our_contests,
    write_rows,
    write_runs,
)
from asyncfeded_paper.scope import USUAL_SUSPENSION
from asyncfeded_paper.stored import StoredRuns
from asyncfeded_paper.sweeps import SWEEPS, Point, ranking, results
from asyncfeded_paper.work import Laboratory, OnProgress, Unit

Tell = Callable[[str], None]
"""Told in a few words what is done next."""


class Reproduction:
    """The paper's evaluation in a folder: a store of runs, figures, tables and the report."""

    def __init__(self, plan: Plan, folder: Path, command: str) -> None:
        self._plan = plan
        self._folder = folder
        self._command = command
        for part in ("figures", "tables"):
            try:
                (folder / part).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                reason = error.strerror
                raise FileError(f"out {str(folder)!r} cannot be written: {reason}") from None
        self._store = RunStore(folder / "store")
        self._cells = [
            *cells_over_time(plan),
            *cells_of_constant_epochs(plan),
            *cells_of_study(plan),
        ]

    def check(self, tell: Tell) -> None:
        """Miss data that are not there, and find wrong settings, before anything is begun."""
        tried = [Cell(task, SWEEPS[table].rule, USUAL_SUSPENSION) for table, task in self._tried()]
        every = runs_of(self._plan, [*self._cells, *tried])
        for task, settings in {run.task: run for run in every}.items():
            tell(f"reading the data of {task}")
            resolve(settings)
            digest_for(settings)

    def stored_runs(self) -> Find:
        """Give the runs that are in the store, without any data."""
        return StoredRuns(self._store).find

    def make_runs(self, workers: int, on_progress: OnProgress) -> Find:
        """Make the runs that are not in the store; give them all."""
        laboratory = Laboratory(self._store, workers)
        units = [Unit(settings) for settings in runs_of(self._plan, self._cells)]
        if self._plan.tables:
            # Optuna takes seconds to load, and no figure needs it.
            from asyncfeded_paper.studies import SweepStudy

            for table, task in self._tried():
                units += SweepStudy(self._folder, self._plan, table, task).units()
        laboratory.carry_out(units, on_progress)
        return laboratory.find

    def write(self, find: Find, tell: Tell) -> Path:
        """Write figures, tables and the report of the runs that are found; return the report.

        RESULTS.md is the same report to be read where the figures lie.
        """
        tell("looking for the runs of each figure")
        records = find_records(self._plan, self._cells, find)
        swept = {
            (table, task): results(self._plan, table, task, find) for table, task in self._tried()
        }
        every = {run.key: run for runs in records.values() for run in runs}
        for points in swept.values():
            every |= {run.key: run for _, run in points}
        tell(f"{len(every)} runs were found")
        write_runs(self._folder / "results.csv", every.values())
        found = figures_of(records)
        sections = [
            *self._headline(found, tell),
            *self._figures(records, found, tell),
            *filter(None, [variants.study(records, self._plan)]),
            *self._tables(swept),
        ]
        path = self._folder / "report.html"
        tell(f"writing {path.name}")
        seeds = [len(runs) for runs in records.values()]
        lead = words.lead(self._plan, len(every), seeds)
        title = "AsyncFedED: the paper's evaluation, reproduced"
        write_page(path, title, lead, sections)
        write_markdown(self._folder / "RESULTS.md", title, lead, sections)
        return path

    def _tried(self) -> Iterator[tuple[int, str]]:
        """Every table with every task that it is made for."""
        yield from product(self._plan.tables, self._plan.tried_tasks)

    def _headline(self, found: Sequence[CellFigures], tell: Tell) -> Iterator[Section]:
        if not found:
            return
        write_rows(self._folder / "tables" / "cells.csv", beside_authors.cell_rows(found))
        ours = our_contests(found)
        chart = agreement.chart(found)
        if chart is not None:
            words_of_it = agreement.in_words(found, ours)
            title = "Agreement with the authors"
            picture = self._drawn("agreement", title, chart, words_of_it, tell)
            yield replace(picture, grids=[agreement.apart(found)])
        first = beside_authors.first_places(ours, authors_contests(), self._command)
        sections = (first, beside_authors.robustness(found), beside_authors.differences(found))
        yield from (section for section in sections if section is not None)

    def _figures(
        self, records: Records, found: Sequence[CellFigures], tell: Tell
    ) -> Iterator[Section]:
        plan = self._plan
        if 1 in plan.figures:
            tell("playing the example of Figure 1")
            shown = griewank.examples()
            about = words.about_griewank(shown)
            yield self._drawn("figure-1", "Figure 1", griewank.chart(shown), about, tell)
        charts: list[tuple[int, str, Chart | None, Sequence[str]]] = []
        if 2 in plan.figures:
            title = f"Figure 2. Accuracy over time, P = {USUAL_SUSPENSION:g}"
            chart = figures.over_time(records, plan, USUAL_SUSPENSION, title)
            charts.append((2, "figure-2", chart, [words.ABOUT_CURVES]))
            beside = figures.beside_curves(records, plan, USUAL_SUSPENSION)
            charts.append((2, "figure-2-authors", beside, [words.ABOUT_BESIDE]))
        if 3 in plan.figures:
            chart = figures.over_suspension(found, plan)
            charts.append((3, "figure-3", chart, [words.ABOUT_SUSPENSION]))
        if 4 in plan.figures:
            chart = figures.constant_epochs(records, plan)
            charts.append((4, "figure-4", chart, words.about_epochs(records, plan)))
            charts.append((4, "figure-4-steering", figures.steering(records, plan), []))
        for suspension in plan.shown_suspensions():
            number = figure_of(suspension)
            if number in plan.figures and number is not None:
                title = f"Figure {number}. Accuracy over time, P = {suspension:g}"
                chart = figures.over_time(records, plan, suspension, title)
                charts.append((number, f"figure-{number}", chart, []))
        for number, name, chart, paragraphs in charts:
            if chart is not None:
                title = words.TITLES.get(name, f"Figure {number}")
                yield self._drawn(name, title, chart, paragraphs, tell)

    def _drawn(
        self, name: str, title: str, chart: Chart, paragraphs: Sequence[str], tell: Tell
    ) -> Section:
        """Draw a chart to its files, and put it into the report."""
        tell(f"drawing {title}")
        path = self._folder / "figures" / name
        save(chart, path)
        write_rows(path.with_suffix(".csv"), list(_drawn_rows(chart)))
        return Section(
            name,
            title,
            [chart.title, *paragraphs],
            chart=chart,
            image=path.with_suffix(".png"),
            files=[f"figures/{name}{suffix}" for suffix in (".png", ".svg", ".csv")],
        )

    def _tables(
        self, swept: Mapping[tuple[int, str], Sequence[tuple[Point, Record]]]
    ) -> Iterator[Section]:
        databases = [path.name for path in self._folder.glob("sweeps.db")]
        for table in self._plan.tables:
            # A point by itself, such as the paper's own from another figure, is no sweep.
            rankings = {
                task: ranking(task, points)
                for (of_table, task), points in swept.items()
                if of_table == table and len(points) > 1
            }
            if rankings:
                section, rows = variants.sweep(table, SWEEPS[table], rankings)
                write_rows(self._folder / "tables" / f"table-{table}.csv", rows)
                yield replace(section, files=[*section.files, *databases])


def _drawn_rows(chart: Chart) -> Iterator[dict[str, object]]:
    """What a chart shows, one point per row."""
    for panel in chart.panels:
        for line in panel.lines:
            for x, y in zip(line.x, line.y, strict=True):
                yield {"panel": panel.title, "line": line.name, "x": x, "y": _or_empty(y)}
        if panel.landscape is not None:
            for arrow in panel.landscape.arrows:
                kind = "trained" if arrow.number is None else f"step {arrow.number}"
                for x, y in (arrow.start, arrow.end):
                    yield {"panel": panel.title, "line": f"{arrow.name}, {kind}", "x": x, "y": y}
        if panel.matrix is not None:
            for name, values in zip(panel.matrix.rows, panel.matrix.values, strict=True):
                for column, value in zip(panel.matrix.columns, values, strict=True):
                    yield {"panel": panel.title, "line": name, "x": column, "y": _or_empty(value)}


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value
