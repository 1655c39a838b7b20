"""`asyncfeded sweep`: search for good hyperparameters of a rule."""

from collections.abc import Mapping
from math import nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from asyncfeded.cli.interrupted import OF_A_SWEEP
from asyncfeded.cli.options import GroupedCommand, given_values, settings_options
from asyncfeded.cli.output import make_console, say
from asyncfeded.cli.shared_options import begin_loading, config_option, overwrite_option
from asyncfeded.cli.steps import AT_WORK, Steps
from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.settings import RunSettings, comparison_settings
from asyncfeded.own_code import short_name

if TYPE_CHECKING:
    from asyncfeded.cli.goes_on import How
    from asyncfeded.experiment.begun import Begun
    from asyncfeded.experiment.sweep import Sampler

SHOWN = 10
DECIDES_NOTHING = {
    *("out", "seed", "workers", "workers_on", "ray_address", "patience", "checkpoint_every"),
}
"""Settings that may differ in a later call, as in `store.states`; seeds are compared as a list."""


@click.command(cls=GroupedCommand)
@settings_options(repeatable=("seed",))
@click.option(
    "--search",
    multiple=True,
    metavar="TEXT",
    help="what to search, as lam=0.1:10:log, lam=1:5 or kappa=0,0.5,1; may be repeated",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=20,
    help="how many trials in all, with earlier ones [default: 20]",
)
@click.option(
    "--sampler",
    type=click.Choice(["tpe", "grid", "random"]),
    default="tpe",
    help="how points are chosen: by Optuna's TPE, all of a grid, or at random [default: tpe]",
)
@click.option("--metric", default="accuracy", help="which metric is to be best [default: accuracy]")
@config_option
@overwrite_option
def sweep(
    search: tuple[str, ...],
    trials: int,
    sampler: "Sampler",
    metric: str,
    config: Path | None,
    overwrite: bool,
    **options: Any,
) -> None:
    """Search for good hyperparameters; print a table, write sweep.csv and best.toml.

    A trial makes a run for each seed; its value is the mean of the runs' best values. The folder
    keeps all trials: a second call with more --trials goes on, also after an interrupt.

    \b
    Examples:
      asyncfeded sweep --search lam=0.1:10:log --search kappa=0,0.5,1 --seconds 60 --out runs/lam
      asyncfeded sweep --rule fedbuff --search buffer-size=1:20 --sampler random --out runs/m
      asyncfeded run --config runs/m/best.toml
    """
    values = {"rule": "asyncfeded", "seed": [0], **given_values(options, config)}
    if "out" not in values:
        raise SettingError("out must be given: the folder keeps the trials for a later call")
    comparison_settings(values)
    from asyncfeded.experiment.begun import make_begun

    asked = {"search": list(search), "trials": trials, "sampler": sampler, "metric": metric}
    begun = make_begun("sweep", values, **asked)
    carry_out(values, begun, "overwrite" if overwrite else "begin")


def go_on(out: Path, begun: "Begun", changed: Mapping[str, Any]) -> None:
    """Go on with a sweep that was interrupted, also in the middle of a trial."""
    carry_out({**begun.settings, **changed, "out": str(out)}, begun, "go on")


def carry_out(values: Mapping[str, Any], begun: "Begun", how: "How") -> None:
    """Try points until there are enough, and print the best."""
    console = make_console()
    with Steps(console) as step:
        _carry_out(values, begun, how, console, step)


def _carry_out(
    values: Mapping[str, Any], begun: "Begun", how: "How", console: Console, step: Steps
) -> None:
    from asyncfeded.experiment.hyperparameters import read_value
    from asyncfeded.experiment.search_space import read_space

    bases = comparison_settings(values)
    rule, metric = str(values["rule"]), begun.options["metric"]
    search, trials = begun.options["search"], begun.options["trials"]
    sampler: Sampler = begun.options["sampler"]
    space = read_space(rule, search)
    for name in space:
        if name in values:
            raise SettingError(f"{name} must be searched or given, not both; given {values[name]}")
    base = bases[0]
    begin_loading(base, step)

    from asyncfeded.callbacks.goals import goal_of
    from asyncfeded.callbacks.progress import Progress
    from asyncfeded.cli.goes_on import opened
    from asyncfeded.comparison.yardstick import Yardstick
    from asyncfeded.experiment.begun import saved_in, write_begun
    from asyncfeded.experiment.run import resolve
    from asyncfeded.experiment.sweep import SWEEP_FILES, Point, Sweep
    from asyncfeded.experiment.waits import waits_of
    from asyncfeded.report.tables import as_text

    out = Path(values["out"])
    first = resolve(base)
    examples = first.load_data()
    given = {name: read_value(rule, name, value) for name, value in base.hyperparameters.items()}
    yardstick = Yardstick(metric, goal_of(metric, None))
    heading = f"{yardstick.goal} {metric}"

    def measure(number: int, point: Point) -> float:
        found = []
        texts = {name: _as_given(value) for name, value in point.items()}
        for settings in comparison_settings({**values, **texts}):
            resolved = resolve(settings.model_copy(update={"out": None}))
            label = f"trial {number:<3} seed {settings.seed}"
            key = resolved.key(examples)
            if (kept := search_on.kept(key)) is not None:
                say(console, f"{label}  is there already")
                found.append(kept)
                continue
            result = resolved.run([Progress(label, console)], examples, saved_in(out) / key)
            best = yardstick.best_of(result)
            if metric not in result.metrics:
                measured = ", ".join(result.metrics)
                raise SettingError(
                    f"metric must be one that is measured, {measured}; given {metric!r}"
                )
            found.append(nan if best is None else best)
            search_on.keep(key, found[-1])
        mean = fmean(found)
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in point.items())
        say(console, f"trial {number}: {heading} {mean:{yardstick.form}}, {shown}")
        return mean

    step(AT_WORK, said=False)
    for line in waits_of(first):
        say(console, line)
    files = SWEEP_FILES if how == "overwrite" else ()
    # A sweep that is there goes on, whichever command is given; what it is made with is compared.
    again: How = "go on" if how == "begin" else how
    with opened(base, {out: files}, again, begun, OF_A_SWEEP), first.connection():
        made_with = {
            **base.model_dump(mode="json", exclude=DECIDES_NOTHING),
            "seeds": [settings.seed for settings in bases],
            "hyperparameters": given,
            "search": sorted(search),
            "sampler": sampler,
            "metric": metric,
        }
        search_on = Sweep(out, space, sampler, yardstick.goal, base.seed, made_with)
        if how == "begin" and base.checkpoint_every != 0:
            write_begun(out, begun)
        try:
            search_on.run(trials, measure)
        finally:
            if search_on.tried():
                search_on.write(heading, {**_plain(base, values), **given})
    rows = [
        [str(t.number), format(t.value, yardstick.form), *(_shown(t.point[name]) for name in space)]
        for t in search_on.ranking()[:SHOWN]
    ]
    tried = len(search_on.tried())
    title = f"{first.title(short_name(rule))}: the best {len(rows)} of {tried} trials"
    say(console, as_text(title, ["trial", heading, *space], rows))
    say(console, f"best settings: {out / 'best.toml'}")


def _plain(base: RunSettings, values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given, for a file; of several seeds, none."""
    names = {name for name in values if name in RunSettings.model_fields} - {"out"}
    if len(values["seed"]) > 1:
        names.remove("seed")
    return base.model_dump(mode="json", include=names)


def _as_given(value: Any) -> Any:
    """A value as it would be typed."""
    return "none" if value is None else value


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
