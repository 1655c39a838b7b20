"""What the command line shows while the evaluation is made."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from asyncfeded import AsyncFedEDError
from asyncfeded.cli import say

if TYPE_CHECKING:
    from asyncfeded_paper.record import Record
    from asyncfeded_paper.work import Standing, Unit

QUIET_SECONDS = 2.5
"""How long nothing is printed at most while a step is done."""
STATUS_SECONDS = 30.0
"""The same while runs are made, in a file or a pipe: a run may take an hour."""


class Steps:
    """Prints a line for every step, and another now and then while a step takes long."""

    def __init__(self, console: Console, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._console = console
        self._quiet_seconds = quiet_seconds
        self._news = threading.Condition()
        self._step = ""
        self._since = 0.0
        self._ended = False
        self._thread = threading.Thread(target=self._remind, daemon=True)

    def __call__(self, step: str) -> None:
        """Say what is done next."""
        with self._news:
            self._step, self._since = step, time.monotonic()
            say(self._console, step)
            self._news.notify()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._news:
            self._ended = True
            self._news.notify()
        self._thread.join()

    def _remind(self) -> None:
        # If nobody reads any more, whoever tells of the next step will say so.
        with suppress(AsyncFedEDError), self._news:
            while not self._ended:
                told = self._news.wait(self._quiet_seconds)
                if not told and self._step:
                    seconds = time.monotonic() - self._since
                    say(self._console, f"  still {self._step}: {seconds:.0f} s")


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
        self._told_of_waits = False

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
            self._say(f"{place}  {status}{self._waits()}")

    def _waits(self) -> str:
        """Once, when the next line comes: who reads this does not know yet how long to wait."""
        told, self._told_of_waits = self._told_of_waits, True
        return "" if told else f"  (a line every {STATUS_SECONDS:.0f} s, and for every run)"

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
