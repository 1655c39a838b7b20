"""`asyncfeded paper`: the paper's evaluation, figure by figure and table by table."""

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from asyncfeded.cli import make_console, say
from asyncfeded.report import mean_and_spread, table
from asyncfeded_paper.evaluation import Evaluation
from asyncfeded_paper.plan import Plan
from asyncfeded_paper.record import Record
from asyncfeded_paper.results import write_rows
from asyncfeded_paper.scope import FIGURES, SUSPENSIONS, TABLES, TASKS, Scale
from asyncfeded_paper.updates import prediction_rows, predictions
from asyncfeded_paper.work import Standing, Unit

INTERRUPTED = 130
PREDICTION_SEEDS = 5


@click.command()
@click.option("--figure", type=int, multiple=True, help="only this figure, 1 to 14; repeatable")
@click.option("--table", type=int, multiple=True, help="only this table, 1 to 4; repeatable")
@click.option("--study", is_flag=True, help="only the study of what the paper leaves open")
@click.option("--task", multiple=True, help=f"only this task: {', '.join(TASKS)}; repeatable")
@click.option(
    "--scale",
    type=click.Choice(get_args(Scale)),
    default="quick",
    show_default=True,
    help="quick: about 40 minutes on 2 cores; full: everything, for days",
)
@click.option("--seeds", type=int, help="seeds per cell [default: quick 1, full 5]")
@click.option("--seconds", type=float, help="virtual seconds per run [default: by scale and task]")
@click.option(
    "--suspension",
    type=float,
    multiple=True,
    help="P of Figures 3 and 5 to 14; repeatable [default: by scale]; all else is at P = 0.1",
)
@click.option(
    "--report-only", is_flag=True, help="make no runs: report what is in the folder's store"
)
@click.option(
    "--predict-updates",
    is_flag=True,
    help="make no runs: print how many updates the devices make, beside the authors'",
)
@click.option("--workers", type=int, default=1, show_default=True, help="runs made at once")
@click.option("--data-dir", type=click.Path(path_type=Path), help="where data sets lie")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/paper"),
    show_default=True,
    help="folder for the runs, the figures, the tables and report.html",
)
def paper(
    figure: tuple[int, ...],
    table: tuple[int, ...],
    study: bool,
    task: tuple[str, ...],
    scale: Scale,
    seeds: int | None,
    seconds: float | None,
    suspension: tuple[float, ...],
    report_only: bool,
    predict_updates: bool,
    workers: int,
    data_dir: Path | None,
    out: Path,
) -> None:
    """Reproduce the paper's figures and tables beside the authors' numbers; write report.html.

    A run that is in the folder's store is not made again: interrupt the command and start it
    anew, or widen it, and it goes on where it was.

    \b
    Examples:
      asyncfeded paper --workers 2
      asyncfeded paper --figure 2 --task synthetic-1-1 --seeds 3
      asyncfeded paper --table 4 --task synthetic-1-1 --scale full --workers 2
      asyncfeded paper --figure 3 --scale full --suspension 0 --suspension 0.9 --seeds 3
      asyncfeded paper --predict-updates --task femnist
    """
    everything = not (figure or table or study)
    plan = Plan(
        scale=scale,
        tasks=task or TASKS,
        figures=FIGURES if everything else figure,
        tables=TABLES if everything else table,
        study=everything or study,
        seeds=seeds,
        seconds=seconds,
        suspensions=suspension,
        data_dir=data_dir,
    )
    if predict_updates:
        _predict_updates(plan.tasks, suspension or SUSPENSIONS, seeds or PREDICTION_SEEDS, out)
        return
    command = shlex.join(["asyncfeded", *sys.argv[1:]])
    evaluation = Evaluation(plan, out, workers, command)
    console = make_console()
    try:
        if not report_only:
            with PaperProgress(console) as progress:
                evaluation.run(progress)
    except KeyboardInterrupt:
        say(console, "interrupted: the runs that were done are kept; the same command goes on")
        sys.exit(INTERRUPTED)
    say(console, f"report: {evaluation.write()}")


def _predict_updates(
    tasks: Sequence[str], suspensions: Sequence[float], seeds: int, folder: Path
) -> None:
    """Print a table per task, and write all of it to a file."""
    console = make_console()
    headings = ["rule", "P", "drawn hangs", "/ authors'", "authors' hangs", "/ authors'", "authors"]
    rows: list[dict[str, object]] = []
    for task in tasks:
        found = list(predictions([task], suspensions, seeds))
        shown = [
            (
                cell.rule,
                f"{cell.suspension:g}",
                mean_and_spread(cell.drawn.mean, cell.drawn.sd, seeds, ".0f"),
                f"{cell.drawn_ratio:.2f}",
                f"{cell.replayed:.0f}",
                f"{cell.replayed_ratio:.2f}",
                f"{cell.authors:.0f}",
            )
            for cell in found
        ]
        console.print(table(f"{task}: updates in 300 s, {seeds} seeds", headings, shown))
        rows += prediction_rows(found)
    path = folder / "tables" / "updates.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, rows)
    say(console, f"table: {path}")


class PaperProgress:
    """Shows how many runs are done, which are being made and how long the rest may take."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Progress(
            TextColumn("[bold]runs"),
            MofNCompleteColumn(),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[status]}"),
            console=console,
            auto_refresh=False,
        )
        self._bar = self._live.add_task("runs", total=None, status="")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, standing: Standing, unit: Unit | None, record: Record | None) -> None:
        """Show where the work stands."""
        status = _status(standing)
        if self._console.is_terminal:
            self._live.update(
                self._bar, completed=standing.done, total=standing.total, status=status
            )
            self._live.refresh()
        elif unit is not None and record is not None:
            say(
                self._console,
                f"{standing.done}/{standing.total}  {unit.name}  "
                f"max {record.max_accuracy:.2%}  {status}",
            )


def _status(standing: Standing) -> str:
    seconds = standing.seconds_left(time.monotonic())
    rest = "" if seconds is None else f"about {_duration(seconds)} left"
    names = ", ".join(unit.name for unit, _ in standing.running.values())
    running = f"{len(standing.running)} running: {names}"
    return "  ".join(filter(None, (rest, running if standing.running else "")))


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{round(seconds)} s" if minutes < 2 else f"{minutes} min"
