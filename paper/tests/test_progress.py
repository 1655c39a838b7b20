"""What is printed while the report is made."""

import time
from io import StringIO

from rich.console import Console

from asyncfeded.experiment import run_settings
from asyncfeded_paper.progress import STATUS_SECONDS, PaperProgress
from asyncfeded_paper.work import Standing, Unit


def test_runs_that_are_made_into_a_pipe_are_a_line_now_and_then() -> None:
    output = StringIO()
    progress = PaperProgress(Console(file=output, width=200))
    unit = Unit(run_settings({"task": "synthetic-1-1"}))
    standing = Standing([unit.kind], workers=1, running={"a": (unit, time.monotonic())})
    for since in (0.0, STATUS_SECONDS, 0.0):
        progress._said_at -= since
        progress(standing, None, None)
    line = "0/2  1 running: synthetic-1-1 asyncfeded P=0.1 seed 0\n"
    assert output.getvalue() == 2 * line
