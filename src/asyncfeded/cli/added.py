"""Commands that other packages add to `asyncfeded`.

A package names a click command in its entry points, in the group `asyncfeded.commands`:

    [project.entry-points."asyncfeded.commands"]
    paper = "asyncfeded_paper.command:paper"

Its module is imported when the command is called, or when the help lists it.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

GROUP = "asyncfeded.commands"
NOT_INSTALLED = {
    "paper": "the command 'paper' is in the package asyncfeded-paper, which is not installed: "
    "in a copy of the repository, run 'make paper' or 'pip install -c constraints.txt ./paper'"
}
"""Commands of packages that are known, and how to install them."""


class OpenGroup(click.Group):
    """Commands of our own, by name and place, and those that other packages add; ours go first."""

    def __init__(self, *args: Any, ours: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._ours = ours

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of all commands, in alphabetical order."""
        return sorted({*self._ours, *entry_points(group=GROUP).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Find a command of ours, or load another package's."""
        if cmd_name in self._ours:
            ours: click.Command = EntryPoint(cmd_name, self._ours[cmd_name], GROUP).load()
            return ours
        added = tuple(entry_points(group=GROUP, name=cmd_name))
        if added:
            return _loaded(added[0])
        if cmd_name in NOT_INSTALLED:
            raise click.UsageError(NOT_INSTALLED[cmd_name])
        return None


def _loaded(entry: EntryPoint) -> click.Command:
    """The command; of one that cannot be imported, a command that says why."""
    try:
        command = entry.load()
    except (ImportError, AttributeError) as error:
        return _unusable(entry, f"{type(error).__name__}: {error}")
    if isinstance(command, click.Command):
        return command
    return _unusable(entry, f"its type is {type(command).__name__}, not click.Command")


def _unusable(entry: EntryPoint, reason: str) -> click.Command:
    text = f"the command {entry.name!r} ({entry.value}) cannot be loaded: {reason}"

    def fail() -> None:
        raise click.UsageError(text)

    words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED, expose_value=False)
    options = {"ignore_unknown_options": True}
    return click.Command(
        entry.name, callback=fail, params=[words], help=text, context_settings=options
    )
