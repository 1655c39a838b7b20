"""`asyncfeded`: run one rule, or compare several."""

import os
import signal
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

import click

from asyncfeded.callbacks.progress import Progress
from asyncfeded.cli.added import OpenGroup
from asyncfeded.cli.data import data
from asyncfeded.cli.options import GroupedCommand, given_values, settings_options
from asyncfeded.cli.output import make_console, say, show_any_text
from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.experiment.compare import Comparison, RuleFigures
from asyncfeded.experiment.folders import COMPARISON_FILES, RUN_FILES, result_folders
from asyncfeded.experiment.run import resolve
from asyncfeded.experiment.settings import RunSettings, comparison_settings, run_settings
from asyncfeded.report.tables import mean_and_spread, table
from asyncfeded.tasks.paper_task import PAPER_RULES
from asyncfeded.version import __version__

USAGE_ERROR = 2
INTERRUPTED = 130
NOT_SHOWN = (
    *("finished", "ended_by", "stopped_by", "metrics", "warnings", "settings", "package_version"),
)
"""What a summary has and the command does not print."""

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="a TOML file with the same names, such as suspension = 0.1; options override it",
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="replace the results that the folder holds"
)


@click.group(
    cls=OpenGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="asyncfeded")
def cli() -> None:
    """Asynchronous federated learning on a virtual clock, or on Ray in real time.

    \b
    asyncfeded run --rule asyncfeded --seconds 60      one rule
    asyncfeded compare --seconds 60                    the five rules of the paper
    asyncfeded paper --workers 2                       the paper's figures (first: make paper)
    asyncfeded data list                               the data sets that are there
    """


cli.add_command(data)


@cli.command(cls=GroupedCommand)
@settings_options(repeatable=())
@config_option
@overwrite_option
def run(config: Path | None, overwrite: bool, **options: Any) -> None:
    """Run one rule; write summary.json, events.jsonl, accuracy.csv, accuracy.png, clients.csv.

    \b
    Examples:
      asyncfeded run --task synthetic-1-1 --rule asyncfeded --seconds 300 --suspension 0.1
      asyncfeded run --rule asyncfeded --gamma-bar 1 --kappa 0.5 --rounding carry
      asyncfeded run --rule fedbuff --buffer-size 5 --clients 50 --out runs/fedbuff
      asyncfeded run --rule fedavg --leave client-3@60 --workers 2
      asyncfeded run --config my.toml --seed 1
      asyncfeded run --on ray --seconds 60
    """
    values = given_values(options, config)
    settings = run_settings(values)
    settings = _with_folder(
        settings, f"{settings.task}-{settings.rule}-seed{settings.seed}", values
    )
    console = make_console()
    resolved = resolve(settings)
    examples = resolved.load_data()
    assert settings.out is not None
    with result_folders({settings.out: RUN_FILES}, overwrite):
        result = resolved.run([Progress(settings.rule, console)], examples)
    figures = {"task": resolved.task.title, **result.summary(), "results": settings.out}
    for name, value in figures.items():
        if name not in NOT_SHOWN:
            say(console, f"{name:<20} {_shown(value)}")
    for warning in result.warnings:
        say(console, f"warning: {warning}")


@cli.command(cls=GroupedCommand)
@settings_options(repeatable=("rule", "seed"))
@config_option
@overwrite_option
def compare(config: Path | None, overwrite: bool, **options: Any) -> None:
    """Run several rules and seeds; print a table, write compare.csv and compare.png.

    Without --rule, the five rules of the paper. Every rule meets the same initial model, data
    and device draws.

    \b
    Examples:
      asyncfeded compare --seconds 60 --seed 0 --seed 1
      asyncfeded compare --rule asyncfeded --rule fedbuff --suspension 0.5 --workers 2
    """
    values = {"rule": list(PAPER_RULES), **given_values(options, config)}
    every = comparison_settings(values)
    first = _with_folder(every[0], f"compare-{every[0].task}", values)
    folder = first.out
    assert folder is not None
    every = [
        settings.model_copy(update={"out": folder / settings.rule / f"seed-{settings.seed}"})
        for settings in every
    ]
    runs = [resolve(settings) for settings in every]
    examples = runs[0].load_data()
    console = make_console()
    comparison = Comparison()
    warnings: list[str] = []
    folders = {folder: COMPARISON_FILES} | {s.out: RUN_FILES for s in every if s.out is not None}
    # One Ray for all runs, where they need one.
    with result_folders(folders, overwrite), runs[0].connection():
        for resolved in runs:
            settings = resolved.settings
            label = f"{settings.rule:<19} seed {settings.seed}"
            result = resolved.run([Progress(label, console)], examples)
            comparison.add(settings.rule, result)
            warnings += [f"{settings.rule}, seed {settings.seed}: {w}" for w in result.warnings]
        title = f"{runs[0].title()}, {first.clients} clients"
        comparison.write(folder, title)
    clock = "virtual" if first.on == "virtual" else "real"
    headings = ["rule", "max accuracy", "90 % after", "clients 5–95 %", "updates"]
    rows = [_row(figures) for figures in comparison.table()]
    for rule, refused in comparison.refused().items():
        say(console, f"{rule}: {refused} updates were refused")
    console.print(table(f"{title}, {first.seconds:g} {clock} seconds", headings, rows))
    for warning in warnings:
        say(console, f"warning: {warning}")
    say(console, f"plot: {folder / 'compare.png'}")


def _with_folder(settings: RunSettings, name: str, given: Mapping[str, Any]) -> RunSettings:
    """Without a folder of the user's, one that other settings do not share."""
    if settings.out is not None:
        return settings
    said = sorted((setting, str(value)) for setting, value in given.items())
    digest = sha256(repr(said).encode()).hexdigest()[:6]
    return settings.model_copy(update={"out": Path("runs") / f"{name}-{digest}"})


def _row(figures: RuleFigures) -> tuple[str, ...]:
    seeds = figures.seeds
    return (
        figures.rule,
        mean_and_spread(figures.max_accuracy.mean, figures.max_accuracy.sd, seeds, ".2%"),
        mean_and_spread(figures.t90_seconds.mean, figures.t90_seconds.sd, seeds, ".0f") + " s",
        f"{figures.client_accuracy_p5.mean:.0%}–{figures.client_accuracy_p95.mean:.0%}",
        mean_and_spread(figures.updates.mean, figures.updates.sd, seeds, ".0f"),
    )


def _shown(value: object) -> str:
    match value:
        case float():
            return f"{value:.4f}"
        case dict():
            return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
        case _:
            return str(value)


def main() -> None:
    """Run the command line; what the user can mend is said in one line, with exit code 2."""
    _let_sigterm_interrupt()
    show_any_text()
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(USAGE_ERROR)
    except click.ClickException as error:
        _fail(error.format_message())
    except AsyncFedEDError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'a file'} cannot be read or written: {error.strerror}")
    except (KeyboardInterrupt, click.Abort):
        click.echo(
            "interrupted; a run's folder holds what there was until then: the last version in "
            "model.safetensors, and a summary.json that says finished: false",
            err=True,
        )
        sys.exit(INTERRUPTED)


def _let_sigterm_interrupt() -> None:
    """Let SIGTERM end this process as Ctrl-C does; one that was forked from it just ends."""
    this = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == this:
            signal.default_int_handler(number, frame)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _fail(message: str) -> None:
    click.echo("error: " + " ".join(message.split()), err=True)
    sys.exit(USAGE_ERROR)
