"""A process that kills itself at a step: an event of the run, or a call that changes the disk.

The steps of a run are the same every time, so a seed can name the moment of a kill, also between
two calls that follow each other at once. A write is cut short, as one that a kill interrupts.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asyncfeded.store.log import EventLog

CALLS = (
    *("open", "mkdir", "rmdir", "unlink", "rename", "replace"),
    *("pwritev", "ftruncate", "fsync", "fdatasync"),
)
"""What the product asks of the operating system that changes files, or waits for them."""


def die() -> None:
    """End this process as a power cut would: nothing of Python's is run any more."""
    os.kill(os.getpid(), signal.SIGKILL)


class Steps:
    """Counts the steps of this process, and ends it before the step `last`."""

    def __init__(self, last: int | None, counted: Path) -> None:
        self._last = last
        self._counted = counted
        self._number = 0

    def begin(self) -> None:
        """Count from now on."""
        for name in CALLS:
            setattr(os, name, self._counting(name, getattr(os, name)))
        write = EventLog.write

        def written(log: EventLog, event: Any) -> None:
            self._step()
            write(log, event)

        EventLog.write = written  # type: ignore[assignment, method-assign]

    def end(self) -> None:
        """Write down how many steps there were."""
        self._counted.write_text(str(self._number))

    def _step(self, torn: Callable[[], object] = lambda: None) -> None:
        self._number += 1
        if self._number == self._last:
            torn()
            die()

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if name == "pwritev":
                self._step(lambda: self._write_less(call, *arguments))
            else:
                self._step()
            return call(*arguments, **named)

        return counted

    def _write_less(self, write: Callable[..., Any], file: int, pieces: Any, start: int) -> None:
        """Write a part of what should be written: more or less of it, depending on the step."""
        content = b"".join(map(bytes, pieces))
        write(file, [content[: len(content) * (self._number % 8) // 8]], start)
