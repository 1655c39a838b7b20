"""Every command in the documentation exists, with its options."""

from pathlib import Path

import pytest

from snippets import blocks_of, commands_in, unknown_in

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    shell = [block.text for block in blocks_of(page) if block.language == "sh"]
    for words in (words for text in shell for words in commands_in(text)):
        assert list(unknown_in(words)) == [], " ".join(words)


def test_the_page_on_the_command_line_has_commands() -> None:
    shell = [block.text for block in blocks_of(DOCS / "command-line.md") if block.language == "sh"]
    assert sum(len(commands_in(text)) for text in shell) > 10


def test_an_option_that_does_not_exist_is_found() -> None:
    assert list(unknown_in(["asyncfeded", "run", "--rule", "fedavg", "--ruel", "3"])) == ["--ruel"]
    assert list(unknown_in(["asyncfeded", "rnu", "--rule", "fedavg"])) == ["rnu"]
