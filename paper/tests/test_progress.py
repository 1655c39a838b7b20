"""What is printed while the report is made."""

import time
from io import StringIO

import pytest
from rich.console import Console

from asyncfeded.experiment import run_settings
from asyncfeded_paper.progress import PaperProgress, Steps
from asyncfeded_paper.work import Standing, Unit
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


def test_an_error_in_a_step_ends_the_lines() -> None:
    output = StringIO()
    with pytest.raises(ZeroDivisionError):
        fail_in_a_step(output)
    said = output.getvalue()
    time.sleep(0.05)
    assert output.getvalue() == said


def test_runs_that_are_made_say_once_when_the_next_line_comes() -> None:
    output = StringIO()
    progress = PaperProgress(Console(file=output, width=200))
    unit = Unit(run_settings({"task": "synthetic-1-1"}))
    standing = Standing([unit.kind], workers=1, running={"a": (unit, time.monotonic())})
    for _ in range(2):
        progress(standing, None, None)
        progress._said_at = -1e9
    lines = output.getvalue().splitlines()
    assert lines[0] == f"{lines[1]}  (a line every 30 s, and for every run)"
    assert lines[1] == "0/2  1 running: synthetic-1-1 asyncfeded P=0.1 seed 0"


def fail_in_a_step(output: StringIO) -> None:
    with Steps(Console(file=output), quiet_seconds=0.01) as step:
        step("dividing")
        raise ZeroDivisionError
