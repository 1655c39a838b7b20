"""`asyncfeded compare`: several rules and seeds side by side."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from asyncfeded.cli.options import GroupedCommand, given_values, settings_options
from asyncfeded.cli.output import make_console, say
from asyncfeded.cli.shared_options import (
    begin_loading,
    config_option,
    overwrite_option,
    plain_name,
    with_folder,
)
from asyncfeded.cli.steps import AT_WORK, Steps
from asyncfeded.cli.tracking import track_option, tracked_files, trackers, where_to_look
from asyncfeded.experiment.settings import RunSettings, comparison_settings
from asyncfeded.own_code import short_name
from asyncfeded.tasks.paper_task import PAPER_RULES

if TYPE_CHECKING:
    from asyncfeded.cli.goes_on import How
    from asyncfeded.experiment.begun import Begun


@click.command(cls=GroupedCommand)
@settings_options(repeatable=("rule", "seed"))
@click.option(
    "--target",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="NUMBER",
    help="an accuracy, such as 0.8: the table says when each rule reached it",
)
@config_option
@overwrite_option
@track_option
def compare(
    target: float | None,
    config: Path | None,
    overwrite: bool,
    track: tuple[str, ...],
    **options: Any,
) -> None:
    """Run several rules and seeds; print a table, write compare.csv and compare.png.

    Without --rule, the five rules of the paper. Every rule meets the same initial model, data
    and device draws.

    \b
    Examples:
      asyncfeded compare --seconds 60 --seed 0 --seed 1 --target 0.8
      asyncfeded compare --rule asyncfeded --rule fedbuff --suspension 0.5 --workers 2
    """
    values = {"rule": list(PAPER_RULES), **given_values(options, config)}
    every = comparison_settings(values)
    first = with_folder(every[0], f"compare-{short_name(every[0].task)}", values)
    from asyncfeded.experiment.begun import make_begun

    begun = make_begun("compare", values, target=target, track=list(track))
    carry_out([first, *every[1:]], begun, "overwrite" if overwrite else "begin")


def go_on(out: Path, begun: "Begun", changed: Mapping[str, Any]) -> None:
    """Go on with a comparison that was interrupted; finished runs are kept."""
    every = comparison_settings({**begun.settings, **changed, "out": str(out)})
    carry_out(every, begun, "go on")


def carry_out(every: list[RunSettings], begun: "Begun", how: "How") -> None:
    """Carry out the runs into the folder of the first, and print the table."""
    console = make_console()
    with Steps(console) as step:
        begin_loading(every[0], step)
        _carry_out(every, begun, how, console, step)


def _carry_out(
    every: list[RunSettings], begun: "Begun", how: "How", console: Console, step: Steps
) -> None:
    from asyncfeded.callbacks.progress import Progress
    from asyncfeded.cli.goes_on import opened
    from asyncfeded.comparison import Comparison
    from asyncfeded.experiment.begun import is_finished
    from asyncfeded.experiment.finished import read_result
    from asyncfeded.experiment.folders import COMPARISON_FILES, RUN_FILES
    from asyncfeded.experiment.run import resolve
    from asyncfeded.experiment.waits import waits_of
    from asyncfeded.report.tables import as_text

    first, track = every[0], begun.options["track"]
    comparison = Comparison(target=begun.options["target"])
    folder = first.out
    assert folder is not None
    named = [(plain_name(short_name(one.rule)), f"seed-{one.seed}") for one in every]
    every = [
        one.model_copy(update={"out": folder.joinpath(*name)})
        for one, name in zip(every, named, strict=True)
    ]
    runs = [resolve(settings) for settings in every]
    tracking = [trackers(track, folder, " ".join(name), *name) for name in named]
    examples = runs[0].load_data()
    title = f"{runs[0].title()}, {len(examples.train)} clients"
    warnings: list[str] = []
    step(AT_WORK, said=False)
    for line in waits_of(runs[0]):
        say(console, line)
    files = (*COMPARISON_FILES, *tracked_files(track, folder))
    folders = {folder: files} | {s.out: RUN_FILES for s in every if s.out is not None}
    with (
        opened(first, folders, how, begun),
        runs[0].connection(),  # one Ray for all runs, where they need one
        comparison.written_to(folder, title),
    ):
        for line in where_to_look(track, folder):
            say(console, line)
        for resolved, own in zip(runs, tracking, strict=True):
            rule, seed = short_name(resolved.settings.rule), resolved.settings.seed
            place = resolved.settings.out
            if how == "go on" and place is not None and is_finished(place):
                result = read_result(place)
                say(console, f"{rule:<19} seed {seed}  is there already")
            else:
                shown = Progress(f"{rule:<19} seed {seed}", console)
                result = resolved.run([*own, shown], examples)
            comparison.add(rule, seed, result)
            warnings += [f"{rule}, seed {seed}: {warning}" for warning in result.warnings]
    clock = "virtual" if first.on == "virtual" else "real"
    for line in comparison.refusals():
        say(console, line)
    texts = comparison.texts()
    heading = f"{title}, {first.seconds:g} {clock} seconds"
    width = console.width if console.is_terminal else None
    say(console, as_text(heading, texts.headings, texts.rows, width))
    for warning in warnings:
        say(console, f"warning: {warning}")
    say(console, f"plot: {folder / 'compare.png'}")
