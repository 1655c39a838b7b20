"""`asyncfeded run`: one rule."""

from pathlib import Path
from typing import Any

import click

from asyncfeded.cli.options import GroupedCommand, given_values, settings_options
from asyncfeded.cli.output import make_console, say
from asyncfeded.cli.shared_options import config_option, overwrite_option, with_folder
from asyncfeded.experiment.settings import run_settings
from asyncfeded.own_code import short_name

NOT_SHOWN = (
    *("finished", "ended_by", "stopped_by", "metrics", "warnings", "settings", "package_version"),
)
"""What a summary has and the command does not print."""


@click.command(cls=GroupedCommand)
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
    task, rule = short_name(settings.task), short_name(settings.rule)
    settings = with_folder(settings, f"{task}-{rule}-seed{settings.seed}", values)
    from asyncfeded.callbacks.progress import Progress
    from asyncfeded.experiment.folders import RUN_FILES, result_folders
    from asyncfeded.experiment.run import resolve

    console = make_console()
    resolved = resolve(settings)
    examples = resolved.load_data()
    assert settings.out is not None
    with result_folders({settings.out: RUN_FILES}, overwrite):
        result = resolved.run([Progress(rule, console)], examples)
    figures = {"task": resolved.task.title, **result.summary(), "results": settings.out}
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
