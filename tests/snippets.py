"""The blocks of code of a page, and what the page says that they print."""

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OUTPUT = "Output"


@dataclass(frozen=True)
class Block:
    """A block in the order of its page: a file to write, code to run, or its output."""

    language: str
    title: str | None
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in FENCE.finditer(page.read_text())]
