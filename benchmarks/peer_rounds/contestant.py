"""A contestant's process, seen from the benchmark that runs it."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, NamedTuple

START_SECONDS = 300.0
SLOT_SECONDS = 600.0
END_SECONDS = 5.0


class ContestantFailedError(Exception):
    """A contestant ended by itself or did not answer; the message is one line."""


class UnavailableError(Exception):
    """A contestant says that there is no such row; the message says why."""


class Slot(NamedTuple):
    """What a contestant has done in one turn."""

    rounds: int
    seconds: float

    @property
    def rate(self) -> float:
        """Client rounds per second."""
        return self.rounds / self.seconds


@dataclass
class Contestant:
    """A long-living process in a session of its own, stopped until it is told to go.

    Some tools have processes that wake up many times a second even when there is nothing to do;
    while they are stopped, they take nothing from whoever's turn it is.
    """

    name: str
    process: subprocess.Popen[str]
    log: Path
    rate: float = 0.0
    note: str = ""
    slots: list[Slot] = field(default_factory=list)

    @classmethod
    def start(
        cls, name: str, command: list[str], folder: Path, environment: dict[str, str], log: Path
    ) -> "Contestant":
        """Start the process in this folder; what it prints besides answers goes to the log."""
        with log.open("w") as errors:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                start_new_session=True,
            )
        return cls(name, process, log)

    def wait_until_ready(self) -> None:
        """Wait until it has warmed up."""
        answer = self._answer(START_SECONDS)
        if "unavailable" in answer:
            raise UnavailableError(answer["unavailable"])
        self.rate, self.note = answer["ready"]["rate"], answer["ready"]["note"]
        self._signal(signal.SIGSTOP)

    def go(self, seconds: float) -> None:
        """Let it work for about so long, by its speed so far."""
        count = max(1, round(self.rate * seconds))
        assert self.process.stdin is not None
        self._signal(signal.SIGCONT)
        with suppress(BrokenPipeError):  # the answer will say why
            self.process.stdin.write(f"go {count}\n")
        slot = Slot(**self._answer(SLOT_SECONDS))
        self._signal(signal.SIGSTOP)
        self.rate = slot.rate
        self.slots.append(slot)

    def end(self) -> None:
        """Ask it to end, and end it and all that it has started if it does not."""
        self._signal(signal.SIGCONT)
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self.process.communicate("quit\n", timeout=END_SECONDS)
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select([self.process.stdout], [], [], seconds)
        if not ready:
            raise ContestantFailedError(f"no answer within {seconds:g} s")
        line = self.process.stdout.readline()
        if not line:
            raise ContestantFailedError(self._last_words())
        try:
            answer: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            raise ContestantFailedError(f"said {line.strip()!r} instead of an answer") from None
        return answer

    def _last_words(self) -> str:
        code = self.process.wait()
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else f"ended with exit code {code}"
