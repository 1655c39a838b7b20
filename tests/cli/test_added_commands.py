"""Commands that other packages add to the command line."""

from pathlib import Path

import pytest

from asyncfeded.cli import added
from command_line import asyncfeded_here as asyncfeded

MODULE = """
import click

@click.command()
@click.option("--times", default=1)
def greet(times):
    "Say hello."
    click.echo("hello " * times)

number = 3
"""
POINTS = """
[asyncfeded.commands]
greet = greeting_of_a_test:greet
run = greeting_of_a_test:greet
gone = greeting_of_a_test:missing
number = greeting_of_a_test:number
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with entry points, as if it had been installed."""
    folder = tmp_path / "greeting-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: greeting\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(POINTS)
    (tmp_path / "greeting_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_command_of_another_package_is_called_by_its_name() -> None:
    done = asyncfeded("greet", "--times", "2")
    assert (done.returncode, done.stdout) == (0, "hello hello \n")


def test_the_help_lists_it_and_what_cannot_be_loaded() -> None:
    done = asyncfeded("--help")
    assert done.returncode == 0
    assert "Say hello." in done.stdout
    assert "the command 'gone'" in done.stdout


def test_our_own_commands_go_first() -> None:
    assert "--rule" in asyncfeded("run", "--help").stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone", "has no attribute 'missing'"), ("number", "its type is int, not click.Command")],
)
def test_what_cannot_be_loaded_is_one_line_with_its_reason(name: str, reason: str) -> None:
    done = asyncfeded(name, "--option", "1")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: the command '{name}' (greeting_of_a_test:")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_known_command_that_is_not_installed_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(added.NOT_INSTALLED, "paint", "pip install asyncfeded-paint")
    done = asyncfeded("paint")
    assert (done.returncode, done.stderr) == (2, "error: pip install asyncfeded-paint\n")


def test_an_unknown_command_is_refused_by_name() -> None:
    done = asyncfeded("papre")
    assert done.returncode == 2
    assert "No such command 'papre'" in done.stderr
