"""The output of the command line: any text in any locale.

If the output cannot be written, that is a FileError like any other: a run whose reader has gone
away ends as it should, with its files.
"""

import os
import sys
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


class _Output:
    """A stream whose errors are ours."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _closed(error) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise _closed(error) from None


def _closed(error: OSError) -> FileError:
    """Send what is left nowhere: Python would try to write it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FileError(f"the output cannot be written: {error.strerror}")
