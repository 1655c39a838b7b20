"""The blocks of code of a page: Python, what the page says that it prints, and commands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from asyncfeded.cli.main import cli

FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OUTPUT = "Output"
TRY_IT = "Try it"


@dataclass(frozen=True)
class Block:
    """A block in the order of its page: a file to write, code to run, or its output."""

    language: str
    title: str | None
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in FENCE.finditer(page.read_text())]


def commands_in(text: str) -> list[list[str]]:
    """The words of every command `asyncfeded …` in a shell block, without comments."""
    lines = (line.split("#")[0].split() for line in text.replace("\\\n", " ").splitlines())
    return [words for words in lines if words[:1] == ["asyncfeded"]]


def unknown_in(words: list[str]) -> Iterator[str]:
    """The subcommands and options of a command that do not exist."""
    command: click.Command = cli
    for word in words[1:]:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(click.Context(command), word)
        if found is None:
            yield word
            return
        command = found
    known = {name for parameter in command.params for name in parameter.opts}
    yield from (word for word in words if word.startswith("--") and word not in known)
