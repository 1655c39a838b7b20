"""Show where a run stands: a live line on a terminal, plain lines elsewhere."""

import time
from collections import deque
from math import inf
from statistics import median
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from asyncfeded.callbacks.clients_epochs import ClientsEpochs
from asyncfeded.core.metrics import ACCURACY
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import (
    Evaluated,
    Event,
    Finished,
    Left,
    Received,
    Resumed,
    Started,
    Waiting,
)

PLAIN_LINES = 10
"""How many lines a run prints where there is no terminal …"""
LONGEST_SILENCE_SECONDS = 3
"""… and after how long it prints one in any case."""
RECENT_UPDATES = 50
BAR_WIDTH = 20
WIDTH_WITH_A_BAR = 140
PERCENT_AND_CLOCK_WIDTH = 14
REDRAWS_PER_SECOND = 8
CLOCK_REDRAWS_PER_SECOND = 1


def waited_for(event: Waiting) -> str:
    """Who keeps a run waiting, in words."""
    names = ", ".join(event.clients) or "nobody"
    what = "the round waits for" if event.barrier else "still at work:"
    return f"nothing has arrived for {event.silent_seconds:.0f} s; {what} {names}"


def in_time(updates: int, seconds: float) -> str:
    """Updates per second or, where these are few, per minute."""
    rate = updates / seconds
    if rate >= 10:
        return f"{rate:.0f} updates/s"
    return f"{rate:.1f} updates/s" if rate >= 1 else f"{60 * rate:.1f} updates/min"


class Progress:
    """Shows where a run stands; the label is the rule's name unless another is given."""

    def __init__(self, label: str = "", console: Console | None = None) -> None:
        self._console = console = Console() if console is None else console
        self._label = label
        self._seconds = 0.0
        self._virtual = 0.0
        self._run: Run | None = None
        self._updates_before = 0
        self._metric = ACCURACY
        self._measured: float | None = None
        self._recent_staleness: deque[float] = deque(maxlen=RECENT_UPDATES)
        self._recent_lag: deque[int] = deque(maxlen=RECENT_UPDATES)
        self._epochs = ClientsEpochs()
        self._started = time.perf_counter()
        self._last_drawn = self._started
        self._plain_lines = 0
        bar = [BarColumn(bar_width=BAR_WIDTH)] if console.width >= WIDTH_WITH_A_BAR else []
        # rich draws the clock in a thread, from `__enter__` to `__exit__`. A run forks its workers
        # before: none must be forked while another thread runs.
        self._live = Bars(
            TextColumn("[bold]{task.description}"),
            *bar,
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[status]}"),
            console=console,
            refresh_per_second=CLOCK_REDRAWS_PER_SECOND,
        )
        self._bar = self._live.add_task(label, total=None, status="")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, event: Event, run: Run) -> None:
        """Note an event, and show it if it is time to."""
        if isinstance(event, Started | Resumed):
            self._label = self._label or event.rule
            self._seconds, self._run = run.seconds, run
            self._started, self._updates_before = time.perf_counter(), run.updates
            self._live.update(self._bar, description=self._label, total=run.seconds)
        self._virtual = max(self._virtual, event.seconds)  # evaluations come a little late
        self._epochs.note(event, run)
        match event:
            case Left(reason=str(reason)):
                self._say(f"{event.seconds:.1f} s  {event.client_id} was lost: {reason}")
            case Waiting():
                self._say(f"{event.seconds:.1f} s  {waited_for(event)}")
            case Received(receipt=receipt):
                if receipt.staleness is not None:
                    self._recent_staleness.append(receipt.staleness)
                if receipt.lag is not None:
                    self._recent_lag.append(receipt.lag)
            case Resumed():
                self._say(f"{event.seconds:.1f} s  goes on with version {event.version}")
            case Evaluated():
                self._metric = ACCURACY if ACCURACY in event.metrics else next(iter(event.metrics))
                self._measured = event.metrics[self._metric]
            case _:
                pass
        if self._console.is_terminal:
            self._redraw(force=isinstance(event, Finished))
        else:
            self._print_line(last=isinstance(event, Finished))

    def _say(self, text: str) -> None:
        """Print a line of its own; on a terminal, above the live one."""
        line = f"{self._label}  {text}"
        self._live.console.print(line, soft_wrap=True, highlight=False, markup=False)

    def status(self, width: float = inf) -> str:
        """Where the run stands, as much as fits; staleness or lag is the median of the last 50."""
        run = self._run
        if run is None:
            return ""
        elapsed = max(time.perf_counter() - self._started, 1e-9)
        refused, lost = sum(run.refused.values()), sum(run.lost_rounds.values())
        measured = "–"
        if self._measured is not None:
            measured = format(self._measured, ".1%" if self._metric == ACCURACY else ".4g")
        stale = f"lag {median(self._recent_lag):g}" if self._recent_lag else ""
        if self._recent_staleness:
            stale = f"γ {median(self._recent_staleness):.2f}"
        parts = [  # in the order of the line, each with its place among those to leave out
            (9, f"{self._virtual:.1f} s"),
            (9, f"v{run.version}"),
            (9, f"{self._metric} {measured}"),
            (8, f"{run.updates:,} updates"),
            (7, f"{refused:,} refused" if refused else ""),
            (4, f"{lost:,} lost" if lost else ""),
            (6, f"{run.at_work:,} at work"),
            (5, stale),
            (2, f"mean K {self._epochs.mean:.1f}"),
            (3, in_time(run.updates - self._updates_before, elapsed)),
        ]
        parts = [part for part in parts if part[1]]
        while len(line := "  ".join(text for _, text in parts)) > width and len(parts) > 3:
            parts.remove(min(parts))
        return line

    def _redraw(self, force: bool) -> None:
        now = time.perf_counter()
        if force or now - self._last_drawn > 1 / REDRAWS_PER_SECOND:
            self._last_drawn = now
            status = self.status(self._status_width())
            self._live.update(self._bar, completed=self._virtual, status=status)
            self._live.refresh()

    def _status_width(self) -> int:
        """How many columns label, bar, percentage and clock leave for the status."""
        width = self._console.width
        bar = BAR_WIDTH + 1 if width >= WIDTH_WITH_A_BAR else 0
        return width - len(self._label) - PERCENT_AND_CLOCK_WIDTH - bar

    def _print_line(self, last: bool) -> None:
        tenths = int(PLAIN_LINES * self._virtual / self._seconds)
        silent = time.perf_counter() - self._last_drawn > LONGEST_SILENCE_SECONDS
        if last or silent or self._plain_lines < tenths < PLAIN_LINES:
            self._plain_lines = tenths
            self._last_drawn = time.perf_counter()
            self._console.print(f"{self._label}  {self.status()}", highlight=False, soft_wrap=True)
