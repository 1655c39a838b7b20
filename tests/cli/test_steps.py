"""What is printed while a command does something that takes long."""

import time
from io import StringIO

import pytest
from rich.console import Console

from asyncfeded.cli.steps import Steps
from waiting import wait_until


def test_every_step_is_a_line() -> None:
    output = StringIO()
    with Steps(Console(file=output), quiet_seconds=1000) as step:
        step("reading")
        step("drawing Figure 1")
    assert output.getvalue() == "reading\ndrawing Figure 1\n"


def test_a_step_that_takes_long_says_that_it_goes_on() -> None:
    output = StringIO()
    with Steps(Console(file=output), quiet_seconds=0.01) as step:
        step("drawing Figure 1")
        wait_until(lambda: output.getvalue().count("  still drawing Figure 1: 0 s\n") == 2)


def test_steps_that_are_not_said_do_not_put_off_the_next_line() -> None:
    output = StringIO()
    with Steps(Console(file=output), quiet_seconds=0.5) as step:
        began = time.monotonic()
        while time.monotonic() < began + 60 and not output.getvalue():
            step("loading", said=False)
            time.sleep(0.01)
    assert output.getvalue().startswith("  still loading: ")


def test_an_error_in_a_step_ends_the_lines() -> None:
    output = StringIO()
    with pytest.raises(ZeroDivisionError):
        fail_in_a_step(output)
    said = output.getvalue()
    time.sleep(0.05)
    assert output.getvalue() == said


class Written(StringIO):
    """A stream that says it was written to just now."""

    @property
    def written_at(self) -> float:
        return time.monotonic()


def test_nothing_is_said_while_others_print() -> None:
    output = Written()
    with Steps(Console(file=output), quiet_seconds=0.01) as step:
        step("training", said=False)
        time.sleep(0.1)
    assert output.getvalue() == ""


def fail_in_a_step(output: StringIO) -> None:
    with Steps(Console(file=output), quiet_seconds=0.01) as step:
        step("dividing")
        raise ZeroDivisionError
