"""The line that a run shows while it goes on."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from asyncfeded import Checkpoint, Progress, Refusal, Run, Virtual, guards, rules
from asyncfeded.callbacks.progress import in_time
from asyncfeded.result import Result
from asyncfeded.runtime.events import Event, Received, Resumed
from small_run import small_run


def test_progress_prints_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = small_run(Progress("mine"))
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("mine  ") for line in lines)
    assert f"v{result.versions}" in lines[-1]


def fresh(_: Any) -> Refusal:
    return Refusal.TOO_STALE


def status_lines(width: int, **given: Any) -> tuple[Result, str, list[str]]:
    """A run with a terminal so wide; its last line, and all that was drawn."""
    screen = StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    progress = Progress("mine", console)
    result = small_run(progress, world=Virtual(suspension=0.3), **given)
    drawn = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()))
    return result, progress.status(), [line.rstrip() for line in drawn if line.startswith("mine ")]


def test_progress_says_how_many_updates_were_accepted_refused_and_lost() -> None:
    result, status, _ = status_lines(200, guards=[guards.bounded_staleness(0.5)])
    refused, lost = sum(result.refused.values()), sum(result.lost_rounds.values())
    assert refused > 0
    assert lost > 0
    accuracy = result.curve[-1].accuracy
    start = f"4.0 s  v{result.versions}  accuracy {accuracy:.1%}  {result.updates} updates"
    assert status.startswith(f"{start}  {refused} refused  {lost} lost  3 at work  γ ")
    _, status, _ = status_lines(200, guards=[fresh])
    assert "  0 updates  " in status


def test_a_narrow_terminal_has_what_matters_most_in_one_line() -> None:
    for width in (60, 80, 100, 120, 160):
        result, _, lines = status_lines(width)
        assert max(map(len, lines)) <= width
        assert re.search(rf"100% \d:\d\d:\d\d 4\.0 s  v{result.versions}  accuracy ", lines[-1])
        assert ("mean K" in lines[-1]) == (width >= 120)
        assert ("at work" in lines[-1]) == (width >= 80)


def test_progress_knows_k_of_a_run_that_goes_on(tmp_path: Path) -> None:
    rule = rules.fedavg()

    def stop(event: Event, run: Run) -> None:
        if isinstance(event, Received) and run.updates == 20:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        small_run(Checkpoint(tmp_path, every=0.5), stop, rule=rule)
    seen = []
    progress = Progress("mine", Console(file=StringIO(), width=200))

    def look(event: Event, run: Run) -> None:
        if isinstance(event, Resumed):
            seen.append((progress.status(), run.epochs))

    small_run(progress, look, rule=rule, resume=tmp_path)
    ((status, epochs),) = seen
    assert f"mean K {sum(epochs.values()) / 3:.1f}" in status
    assert min(epochs.values()) >= 1


def test_the_speed_of_a_slow_run_is_per_minute() -> None:
    assert in_time(120, 1.0) == "120 updates/s"
    assert in_time(12, 10.0) == "1.2 updates/s"
    assert in_time(2, 120.0) == "1.0 updates/min"
    assert in_time(0, 5.0) == "0.0 updates/min"
