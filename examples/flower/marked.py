"""Processes that are started together with a mark, and ended with all that they have started.

Flower's processes start others, for every message one, some of them in sessions of their own. So
each process carries a mark in its environment, which its children inherit: whoever has the mark is
ended, by its process id. This reads /proc, which Linux has.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

MARK = "LOCAL_FEDERATION_MEMBER"
END_SECONDS = 5.0
"""This long a process may take to end when it is asked to."""


def start(
    command: Sequence[str], environment: Mapping[str, str], mark: str, log: Path
) -> "subprocess.Popen[bytes]":
    """Start a process with a mark; what it says goes to the end of a file."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            env={**environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us, and we end the others
        )


def marked(mark: str) -> Iterator[int]:
    """The ids of the processes whose mark begins like this."""
    wanted = f"\0{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if wanted in b"\0" + (folder / "environ").read_bytes():
                yield int(folder.name)


def end(mark: str) -> None:
    """Ask all processes with a mark to end; do not ask for ever."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not stop this
    try:
        _send(mark, signal.SIGTERM)
        last = time.monotonic() + END_SECONDS
        while any(marked(mark)) and time.monotonic() < last:
            time.sleep(0.05)
        kill(mark)
    finally:
        signal.signal(signal.SIGINT, before)


def kill(mark: str) -> None:
    """End all processes with a mark at once, as a power cut does."""
    while _send(mark, signal.SIGKILL):
        time.sleep(0.01)  # those that they have started meanwhile are found next time


def _send(mark: str, number: signal.Signals) -> bool:
    """Send a signal to all processes with a mark; whether there was any."""
    found = False
    for process in marked(mark):
        found = True
        with suppress(ProcessLookupError):
            os.kill(process, number)
    return found


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this process in the way of an error, so that all is cleaned up."""

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
