"""The evaluation from its plan to its report: which runs, and what is written of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from asyncfeded_paper.results import (
    CellFigures,
    Records,
    authors_contests,
    figures_of,
    find_records,
    our_contests,
    write_rows,
    write_runs,
)
from asyncfeded_paper.scope import USUAL_SUSPENSION
from asyncfeded_paper.sweeps import SWEEPS, SweepStudy
from asyncfeded_paper.work import Laboratory, OnProgress, Unit, data_for


class Evaluation:
    """The paper's evaluation in a folder: a store of runs, figures, tables and the report."""

    def __init__(self, plan: Plan, folder: Path, workers: int, command: str) -> None:
        self._plan = plan
        self._folder = folder
        self._command = command
        for part in ("figures", "tables"):
            try:
                (folder / part).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                reason = error.strerror
                raise FileError(f"out {str(folder)!r} cannot be written: {reason}") from None
        self._laboratory = Laboratory(RunStore(folder / "store"), workers)
        self._cells = [
            *cells_over_time(plan),
            *cells_of_constant_epochs(plan),
            *cells_of_study(plan),
        ]
        tried = [
            Cell(task, SWEEPS[table].rule, USUAL_SUSPENSION)
            for table in plan.tables
            for task in plan.tried_tasks
        ]
        every = runs_of(plan, [*self._cells, *tried])
        for settings in {run.task: run for run in every}.values():
            resolve(settings)
            data_for(settings)  # data that are not there are missed before anything is begun
        self._sweeps = {
            (table, task): SweepStudy(folder, plan, table, task)
            for table in plan.tables
            for task in plan.tried_tasks
        }

    def run(self, on_progress: OnProgress) -> None:
        """Make the runs that are not there yet."""
        units = [Unit(settings) for settings in runs_of(self._plan, self._cells)]
        for study in self._sweeps.values():
            units += study.units()
        self._laboratory.carry_out(units, on_progress)

    def write(self) -> Path:
        """Write figures, tables and the report from what is in the store; return the report.

        RESULTS.md is the same report to be read where the figures lie.
        """
        records = find_records(self._plan, self._cells, self._laboratory)
        found = figures_of(records)
        sections = [
            *self._headline(found),
            *self._figures(records, found),
            *filter(None, [variants.study(records, self._plan)]),
            *self._tables(),
        ]
        every = {run.key: run for runs in records.values() for run in runs}
        for study in self._sweeps.values():
            every |= {run.key: run for _, run in study.results(self._laboratory)}
        write_runs(self._folder / "results.csv", every.values())
        path = self._folder / "report.html"
        seeds = [len(runs) for runs in records.values()]
        lead = words.lead(self._plan, len(every), seeds)
        title = "AsyncFedED: the paper's evaluation, reproduced"
        write_page(path, title, lead, sections)
        write_markdown(self._folder / "RESULTS.md", title, lead, sections)
        return path

    def _headline(self, found: Sequence[CellFigures]) -> Iterator[Section]:
        if not found:
            return
        write_rows(self._folder / "tables" / "cells.csv", beside_authors.cell_rows(found))
        ours = our_contests(found)
        chart = agreement.chart(found)
        if chart is not None:
            words_of_it = agreement.in_words(found, ours)
            picture = self._drawn("agreement", "Agreement with the authors", chart, words_of_it)
            yield replace(picture, grids=[agreement.apart(found)])
        first = beside_authors.first_places(ours, authors_contests(), self._command)
        sections = (first, beside_authors.robustness(found), beside_authors.differences(found))
        yield from (section for section in sections if section is not None)

    def _figures(self, records: Records, found: Sequence[CellFigures]) -> Iterator[Section]:
        plan = self._plan
        if 1 in plan.figures:
            shown = griewank.examples()
            yield self._drawn(
                "figure-1", "Figure 1", griewank.chart(shown), words.about_griewank(shown)
            )
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
                yield self._drawn(name, title, chart, paragraphs)

    def _drawn(
        self, name: str, title: str, chart: Chart, paragraphs: Sequence[str] = ()
    ) -> Section:
        """Draw a chart to its files, and put it into the report."""
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

    def _tables(self) -> Iterator[Section]:
        for table in self._plan.tables:
            rankings = {
                task: self._sweeps[table, task].ranking(self._laboratory)
                for task in self._plan.tried_tasks
            }
            # A point by itself, such as the paper's own from another figure, is no sweep.
            rankings = {task: rows for task, rows in rankings.items() if len(rows) > 1}
            if rankings:
                section, rows = variants.sweep(table, SWEEPS[table], rankings)
                write_rows(self._folder / "tables" / f"table-{table}.csv", rows)
                yield section


def _drawn_rows(chart: Chart) -> Iterator[dict[str, object]]:
    """What a chart shows, one point per row."""
    for panel in chart.panels:
        for line in panel.lines:
            for x, y in zip(line.x, line.y, strict=True):
                yield {"panel": panel.title, "line": line.name, "x": x, "y": _or_empty(y)}
        if panel.matrix is not None:
            for name, values in zip(panel.matrix.rows, panel.matrix.values, strict=True):
                for column, value in zip(panel.matrix.columns, values, strict=True):
                    yield {"panel": panel.title, "line": name, "x": column, "y": _or_empty(value)}


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value
