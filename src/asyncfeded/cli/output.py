"""The output of the command line: any text in any locale.

If the output cannot be written, that is a FileError like any other: a run whose reader has gone
away ends as it should, with its files.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich.console import Console

from asyncfeded.core.errors import FileError


def make_console() -> Console:
    """The terminal, or a file or pipe whose lines need no terminal's width."""
    output = cast(TextIO, _Output(sys.stdout))
    return Console(file=output) if sys.stdout.isatty() else Console(file=output, width=120)


def say(console: Console, text: str) -> None:
    """Print a line as it is: not wrapped, not coloured, brackets and all."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def written_at(console: Console) -> float:
    """When something was last printed there, by `time.monotonic`; 0 if that is not known."""
    seconds: float = getattr(console.file, "written_at", 0.0)
    return seconds


class _Output:
    """A stream whose errors are ours, and that knows when it was last written to.

    Once it cannot be written, every later try says so: the first may be of a thread that only
    says how long a step takes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._error: FileError | None = None
        self.written_at = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self.written_at = time.monotonic()
        with self._checked():
            return self._stream.write(text)

    def flush(self) -> None:
        with self._checked():
            self._stream.flush()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        if self._error is not None:
            raise self._error
        try:
            yield
        except OSError as error:
            self._error = _closed(error)
            raise self._error from None


def _closed(error: OSError) -> FileError:
    """Send what is left nowhere: Python would try to write it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FileError(f"the output cannot be written: {error.strerror}")
