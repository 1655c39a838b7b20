"""A line now and then while a command does something that takes long."""

import os
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console

from asyncfeded.cli.output import say, written_at
from asyncfeded.core.errors import AsyncFedEDError

QUIET_SECONDS = 2.0
"""How long nothing is printed at most; Python takes some time before this begins to count."""
AT_WORK = "at work"
"""The step of everything that events tell of: the runs themselves."""

_printing = threading.Lock()
if hasattr(os, "register_at_fork"):  # a worker must not begin in the middle of a line
    os.register_at_fork(
        before=_printing.acquire,
        after_in_parent=_printing.release,
        after_in_child=_printing.release,
    )


class Steps:
    """Names what is done, and says that it goes on when nothing was printed for a while."""

    def __init__(self, console: Console, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._console = console
        self._quiet_seconds = quiet_seconds
        self._news = threading.Condition()
        self._step = ""
        self._since = 0.0
        self._said_at = time.monotonic()
        self._ended = False
        self._thread = threading.Thread(target=self._remind, daemon=True)

    def __call__(self, step: str, *, said: bool = True) -> None:
        """Begin a step; with `said=False` it is named only once nothing was printed for a while."""
        with self._news:
            self._step, self._since = step, time.monotonic()
            if said:
                say(self._console, step)
                self._said_at = self._since
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
        # If nobody reads any more, whoever prints next will say so.
        with suppress(AsyncFedEDError), self._news:
            while not self._ended:
                silent = time.monotonic() - max(self._said_at, written_at(self._console))
                if self._step and silent >= self._quiet_seconds:
                    seconds = time.monotonic() - self._since
                    with _printing:
                        say(self._console, f"  still {self._step}: {seconds:.0f} s")
                    self._said_at, silent = time.monotonic(), 0.0
                self._news.wait(self._quiet_seconds - silent if self._step else None)
