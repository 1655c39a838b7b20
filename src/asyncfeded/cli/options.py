"""The command line's options, made from the settings and the rules' hyperparameters.

Every setting is declared once, with its help, where it is checked. Values reach the check as text,
the same way as from a file.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click

from asyncfeded.core.hyperparameters import Hyperparameter
from asyncfeded.experiment.hyperparameters import all_hyperparameters, rule_names
from asyncfeded.experiment.setting_groups import GROUPS, TheCarryingOut, WhatIsRun
from asyncfeded.experiment.settings import RunSettings, read_config, setting_names
from asyncfeded.rules import REGISTRY

Command = Callable[..., None]

THE_SEARCH = "The search"
OF_COMMANDS = {
    "target": WhatIsRun.heading(),
    **dict.fromkeys(("search", "trials", "sampler", "metric"), THE_SEARCH),
    **dict.fromkeys(("overwrite", "track", "serve", "config", "help"), TheCarryingOut.heading()),
}
"""Under which heading the help lists an option that is no setting."""
OF_THE_RULE = "Hyperparameters of the rule (default: the paper's for the task)"

FILES = ("hangs_from", "availability")

TASK_DEFAULTS = (
    *("learning_rate", "momentum", "decay", "decay_per", "batch_size"),
    *("widths", "min_examples", "max_examples"),
)


class HyperparameterOption(click.Option):
    """An option for a hyperparameter, of any rule."""


OWN = "asyncfeded.cli.options.own"
"""Where a context keeps the options of rules that are not of the registry."""


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings.

    A rule of the user's brings the options of its own hyperparameters.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, after a look at which rules are given."""
        ctx.meta[OWN] = _options_of_own_rules(args, {param.name for param in self.params})
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the command, and of the rules that are given."""
        return [*super().get_params(ctx), *ctx.meta.get(OWN, ())]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options group by group."""
        first, *others = (group.heading() for group in GROUPS)
        found: dict[str, list[tuple[str, str]]]
        found = {heading: [] for heading in (first, THE_SEARCH, *others, OF_THE_RULE)}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None:
                found[_heading_of(option)].append(record)
        for heading, records in found.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _heading_of(option: click.Parameter) -> str:
    """What an option is listed under; one that is no setting must be in `OF_COMMANDS`."""
    name = option.opts[-1].removeprefix("--").replace("-", "_")
    if isinstance(option, HyperparameterOption):
        return OF_THE_RULE
    groups = (group.heading() for group in GROUPS if name in group.model_fields)
    return next(groups, None) or OF_COMMANDS[name]


def settings_options(repeatable: tuple[str, ...]) -> Callable[[Command], Command]:
    """Add an option for every setting and hyperparameter, those named as often as wanted."""

    def add(command: Command) -> Command:
        for name, owners in reversed(all_hyperparameters().items()):
            option, words = _hyperparameter_words(name, owners)
            command = click.option(option, cls=HyperparameterOption, **words)(command)
        for name in reversed(setting_names()):
            command = _setting_option(name, name in (*repeatable, "join", "leave"))(command)
        return command

    return add


def given_values(options: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """Merge what was given on the command line with a file's settings, which it overrides."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    return {**({} if config is None else read_config(config)), **given}


def _options_of_own_rules(
    args: list[str], known: Collection[str | None]
) -> list[HyperparameterOption]:
    """Options for the hyperparameters of rules of the user's, on the command line or in a file."""
    rules = _values_of("rule", args)
    for path in _values_of("config", args)[-1:]:
        given = read_config(Path(path)).get("rule", [])
        rules += given if isinstance(given, list) else [given]
    own = [rule for rule in rules if isinstance(rule, str) and rule not in REGISTRY]
    options = []
    for name, owners in all_hyperparameters(own).items():
        if name not in known:
            option, words = _hyperparameter_words(name, owners)
            options.append(HyperparameterOption([option], **words))
    return options


def _values_of(name: str, args: list[str]) -> list[Any]:
    """The values of an option, read without the others."""
    given = flag(name)
    apart = [value for at, value in pairwise(args) if at == given]
    return apart + [arg.removeprefix(f"{given}=") for arg in args if arg.startswith(f"{given}=")]


def _setting_option(name: str, multiple: bool) -> Callable[[Command], Command]:
    field = RunSettings.model_fields[name]
    text = str(field.description)
    if multiple:
        text += "; may be repeated"
    if name == "rule":
        text += f": {', '.join(rule_names())}"
    if field.default not in (None, ()):
        default = "the five of the paper" if name == "rule" and multiple else field.default
        text += f" [default: {default}]"
    elif name in TASK_DEFAULTS:
        text += " [default: the task's]"
    metavar = "FILE" if name in FILES else _metavar(field.annotation)
    return click.option(flag(name), metavar=metavar, multiple=multiple, help=text)


def _hyperparameter_words(
    name: str, owners: list[tuple[str, Hyperparameter]]
) -> tuple[str, dict[str, Any]]:
    """The flag of a hyperparameter, and what its help says."""
    hyperparameter = owners[0][1]
    everybody = set(REGISTRY) <= {rule for rule, _ in owners}
    rules = "every rule" if everybody else ", ".join(rule for rule, _ in owners)
    text = f"{hyperparameter.help} ({rules})"
    return flag(name), {"metavar": _metavar(hyperparameter.type), "help": text}


def flag(name: str) -> str:
    """What is typed for a setting or a hyperparameter."""
    return "--" + name.replace("_", "-")


def _metavar(annotation: Any) -> str:
    """How a type is written in help: NUMBER, INTEGER, or its choices."""
    kinds = {float: "NUMBER", int: "INTEGER", Path: "FOLDER"}
    for kind in (annotation, *get_args(annotation)):
        if get_origin(kind) is Literal:
            return "|".join(get_args(kind))
        if kind in kinds:
            return kinds[kind]
    return "TEXT"
