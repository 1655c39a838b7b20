"""`asyncfeded compare`: several rules and seeds side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncfeded.cli.options import GroupedCommand, given_values, settings_options
from asyncfeded.cli.output import make_console, say
from asyncfeded.cli.shared_options import config_option, overwrite_option, plain_name, with_folder
from asyncfeded.cli.tracking import track_option, tracked_files, trackers, where_to_look
from asyncfeded.experiment.settings import comparison_settings
from asyncfeded.own_code import short_name
from asyncfeded.tasks.paper_task import PAPER_RULES

if TYPE_CHECKING:
    from asyncfeded.experiment.compare import RuleFigures


@click.command(cls=GroupedCommand)
@settings_options(repeatable=("rule", "seed"))
@config_option
@overwrite_option
@track_option
def compare(config: Path | None, overwrite: bool, track: tuple[str, ...], **options: Any) -> None:
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
    first = with_folder(every[0], f"compare-{short_name(every[0].task)}", values)
    from asyncfeded.callbacks.progress import Progress
    from asyncfeded.experiment.compare import Comparison
    from asyncfeded.experiment.folders import COMPARISON_FILES, RUN_FILES, result_folders
    from asyncfeded.experiment.run import resolve
    from asyncfeded.report.tables import table

    folder = first.out
    assert folder is not None
    every = [
        settings.model_copy(
            update={"out": folder / plain_name(short_name(settings.rule)) / f"seed-{settings.seed}"}
        )
        for settings in every
    ]
    runs = [resolve(settings) for settings in every]
    named = [(short_name(one.rule), f"seed-{one.seed}") for one in every]
    tracking = [trackers(track, folder, " ".join(name), *name) for name in named]
    examples = runs[0].load_data()
    console = make_console()
    comparison = Comparison()
    warnings: list[str] = []
    files = (*COMPARISON_FILES, *tracked_files(track, folder))
    folders = {folder: files} | {s.out: RUN_FILES for s in every if s.out is not None}
    # One Ray for all runs, where they need one.
    with result_folders(folders, overwrite), runs[0].connection():
        for line in where_to_look(track, folder):
            say(console, line)
        for resolved, own in zip(runs, tracking, strict=True):
            rule, seed = short_name(resolved.settings.rule), resolved.settings.seed
            result = resolved.run([*own, Progress(f"{rule:<19} seed {seed}", console)], examples)
            comparison.add(rule, result)
            warnings += [f"{rule}, seed {seed}: {warning}" for warning in result.warnings]
        title = f"{runs[0].title()}, {len(examples.train)} clients"
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


def _row(figures: "RuleFigures") -> tuple[str, ...]:
    from asyncfeded.report.tables import mean_and_spread

    seeds = figures.seeds
    return (
        figures.rule,
        mean_and_spread(figures.max_accuracy.mean, figures.max_accuracy.sd, seeds, ".2%"),
        mean_and_spread(figures.t90_seconds.mean, figures.t90_seconds.sd, seeds, ".0f") + " s",
        f"{figures.client_accuracy_p5.mean:.0%}–{figures.client_accuracy_p95.mean:.0%}",
        mean_and_spread(figures.updates.mean, figures.updates.sd, seeds, ".0f"),
    )
