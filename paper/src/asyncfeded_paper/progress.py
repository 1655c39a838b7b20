"""What the command line shows while the evaluation is made."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from asyncfeded.cli import say

if TYPE_CHECKING:
    from asyncfeded_paper.record import Record
    from asyncfeded_paper.work import Standing, Unit

STATUS_SECONDS = 2.0
"""How long nothing is printed at most in a file or a pipe."""


class PaperProgress:
    """Shows how many runs are done, which are being made and how long the rest may take."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Progress(
            TextColumn("[bold]runs"),
            MofNCompleteColumn(),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[status]}"),
            console=console,
            auto_refresh=False,
        )
        self._bar = self._live.add_task("runs", total=None, status="")
        self._said_at = -STATUS_SECONDS

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, standing: "Standing", unit: "Unit | None", record: "Record | None") -> None:
        """Show where the work stands."""
        status = _status(standing)
        if self._console.is_terminal:
            self._live.update(
                self._bar, completed=standing.done, total=standing.total, status=status
            )
            self._live.refresh()
            return
        place = f"{standing.done}/{standing.total}"
        if unit is not None and record is not None:
            self._say(f"{place}  {unit.name}  max {record.max_accuracy:.2%}  {status}")
        elif standing.running and time.monotonic() - self._said_at >= STATUS_SECONDS:
            self._say(f"{place}  {status}")

    def _say(self, line: str) -> None:
        self._said_at = time.monotonic()
        say(self._console, line)


def _status(standing: "Standing") -> str:
    seconds = standing.seconds_left(time.monotonic())
    rest = "" if seconds is None else f"about {_duration(seconds)} left"
    names = ", ".join(unit.name for unit, _ in standing.running.values())
    running = f"{len(standing.running)} running: {names}"
    return "  ".join(filter(None, (rest, running if standing.running else "")))


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{round(seconds)} s" if minutes < 2 else f"{minutes} min"
