"""`asyncfeded paper`: the paper's evaluation, figure by figure and table by table."""

import shlex
import sys
from pathlib import Path
from typing import get_args

import click

from asyncfeded_paper.scope import FIGURES, SUSPENSIONS, TABLES, TASKS, Scale

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
    # Late: the help of the command line, which lists this command, needs none of it.
    from asyncfeded.cli import Steps, make_console, say
    from asyncfeded_paper.plan import Plan
    from asyncfeded_paper.progress import PaperProgress

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
    console = make_console()
    with Steps(console) as step:
        step("loading the evaluation")
        from asyncfeded_paper.predict import predict_updates as predict
        from asyncfeded_paper.reproduction import Reproduction

    if predict_updates:
        predict(console, plan.tasks, suspension or SUSPENSIONS, seeds or PREDICTION_SEEDS, out)
        return
    reproduction = Reproduction(plan, out, shlex.join(["asyncfeded", *sys.argv[1:]]))
    if report_only:
        with Steps(console) as step:
            step(f"reading the runs in {out / 'store'}")
            report = reproduction.write(reproduction.stored_runs(), step)
    else:
        with Steps(console) as step:
            reproduction.check(step)
        try:
            with PaperProgress(console) as progress:
                find = reproduction.make_runs(workers, progress)
        except KeyboardInterrupt:
            say(console, "interrupted: the runs that were done are kept; the same command goes on")
            sys.exit(INTERRUPTED)
        with Steps(console) as step:
            report = reproduction.write(find, step)
    say(console, f"report: {report}")
