"""`asyncfeded run`: one rule."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from asyncfeded.cli.options import GroupedCommand, given_values, settings_options
from asyncfeded.cli.output import make_console, say
from asyncfeded.cli.serving import monitor_of, serve_option, served
from asyncfeded.cli.shared_options import (
    begin_loading,
    config_option,
    overwrite_option,
    with_folder,
)
from asyncfeded.cli.steps import AT_WORK, Steps
from asyncfeded.cli.tracking import track_option, tracked_files, trackers, where_to_look
from asyncfeded.experiment.settings import RunSettings, run_settings
from asyncfeded.own_code import short_name

if TYPE_CHECKING:
    from asyncfeded.callbacks.prometheus import Prometheus
    from asyncfeded.cli.goes_on import How
    from asyncfeded.experiment.begun import Begun

NOT_SHOWN = (
    *("finished", "ended_by", "stopped_by", "metrics", "warnings", "settings", "package_version"),
)
"""What a summary has and the command does not print."""


@click.command(cls=GroupedCommand)
@settings_options(repeatable=())
@config_option
@overwrite_option
@track_option
@serve_option
def run(
    config: Path | None,
    overwrite: bool,
    track: tuple[str, ...],
    serve: str | None,
    **options: Any,
) -> None:
    """Run one rule; write summary.json, events.jsonl, accuracy.csv, accuracy.png, clients.csv.

    \b
    Examples:
      asyncfeded run --task synthetic-1-1 --rule asyncfeded --seconds 300 --suspension 0.1
      asyncfeded run --rule asyncfeded --gamma-bar 1 --kappa 0.5 --rounding carry
      asyncfeded run --rule fedbuff --buffer-size 5 --clients 50 --out runs/fedbuff
      asyncfeded run --rule fedavg --leave client-3@60 --workers 2
      asyncfeded run --config my.toml --seed 1
      asyncfeded run --on ray --seconds 60 --serve 9464
      asyncfeded run --track tensorboard --out runs/mine
    """
    values = given_values(options, config)
    settings = run_settings(values)
    task, rule = short_name(settings.task), short_name(settings.rule)
    settings = with_folder(settings, f"{task}-{rule}-seed{settings.seed}", values)
    from asyncfeded.experiment.begun import make_begun

    begun = make_begun("run", values, track=list(track), serve=serve)
    carry_out(settings, begun, "overwrite" if overwrite else "begin")


def go_on(out: Path, begun: "Begun", changed: Mapping[str, Any]) -> None:
    """Go on with a run that was interrupted."""
    carry_out(run_settings({**begun.settings, **changed, "out": str(out)}), begun, "go on")


def carry_out(settings: RunSettings, begun: "Begun", how: "How") -> None:
    """Carry out a run with its files, and print its figures."""
    monitors = monitor_of(begun.options.get("serve"))
    console = make_console()
    with Steps(console) as step:
        begin_loading(settings, step)
        _carry_out(settings, begun, how, monitors, console, step)


def _carry_out(
    settings: RunSettings,
    begun: "Begun",
    how: "How",
    monitors: "list[Prometheus]",
    console: Console,
    step: Steps,
) -> None:
    from asyncfeded.callbacks.progress import Progress
    from asyncfeded.cli.goes_on import opened
    from asyncfeded.experiment.folders import RUN_FILES
    from asyncfeded.experiment.run import resolve
    from asyncfeded.experiment.waits import waits_of

    track = begun.options["track"]
    rule = short_name(settings.rule)
    resolved = resolve(settings)
    out = settings.out
    assert out is not None
    tracking = trackers(track, out, rule)
    serving = served(monitors, partial(say, console))
    examples = resolved.load_data()
    files = (*RUN_FILES, *tracked_files(track, out))
    with opened(settings, {out: files}, how, begun):
        for line in (*where_to_look(track, out), *waits_of(resolved)):
            say(console, line)
        step(AT_WORK, said=False)
        result = resolved.run([*tracking, *serving, Progress(rule, console)], examples)
    figures = {"task": resolved.task.title, **result.summary(), "results": out}
    for name, value in figures.items():
        if name not in NOT_SHOWN:
            say(console, f"{name:<20} {_shown(value)}")
    for warning in result.warnings:
        say(console, f"warning: {warning}")


def _shown(value: object) -> str:
    match value:
        case float():
            return f"{value:.4f}"
        case dict():
            return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
        case _:
            return str(value)
