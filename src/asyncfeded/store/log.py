"""The log of a run: one JSON object per line, and the digest of all lines.

The log holds what trains the model: who joined, arrived and left, when, and with what effect, to
the last bit of every number. It does not hold evaluations and waiting, which only
look. Two runs with the same `sha256` are the same run.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from asyncfeded.core.errors import FileError
from asyncfeded.runtime.events import (
    Evaluated,
    Event,
    Finished,
    Joined,
    Left,
    Received,
    Replaced,
    Started,
    Waiting,
)

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_ENCODED_AT_ONCE = 32
"""Some 8 kB of lines. One by one, between rounds of training, they cost half as much again."""


class EventLog:
    """Writes events to a file as they happen, or only digests them if there is no file."""

    def __init__(self, path: Path | None = None) -> None:
        self._digest = sha256()
        self._records: list[dict[str, Any]] = []
        try:
            self._file = None if path is None else path.open("wb")
        except OSError as error:
            raise FileError(f"log {str(path)!r} cannot be written: {error.strerror}") from None

    def write(self, event: Event) -> None:
        """Add an event."""
        record = as_record(event)
        if record is not None:
            self._records.append(record)
            if len(self._records) == _ENCODED_AT_ONCE:
                self._encode()

    @property
    def sha256(self) -> str:
        """The digest of the log so far: what `sha256sum` says of the file once it is closed."""
        self._encode()
        return self._digest.hexdigest()

    def _encode(self) -> None:
        if not self._records:
            return
        lines = "".join(f"{_ENCODER.encode(record)}\n" for record in self._records).encode()
        self._records.clear()
        self._digest.update(lines)
        if self._file is not None:
            self._file.write(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._encode()
        if self._file is not None:
            self._file.close()


def as_record(event: Event) -> dict[str, Any] | None:
    """The line of an event; None for those that stay out of the log."""
    match event:
        case Started(seconds, rule, digest):
            return {"event": "start", "seconds": seconds, "rule": rule, "parameters_sha256": digest}
        case Joined(seconds, client_id, version, epochs):
            return {
                "event": "join",
                "seconds": seconds,
                "client": client_id,
                "version": version,
                "epochs": epochs,
            }
        case Received(seconds, number, base_version, epochs, receipt):
            task = receipt.next_task
            return {
                "event": "update",
                "seconds": seconds,
                "client": receipt.client_id,
                "round": number,
                "accepted": receipt.accepted,
                "reason": receipt.reason,
                "base_version": base_version,
                "version": receipt.version,
                "lag": receipt.lag,
                "epochs": epochs,
                "next_epochs": None if task is None else task.epochs,
                "delta_norm": receipt.delta_norm,
                **receipt.figures,
            }
        case Replaced(seconds, client_id, successor, version, epochs):
            return {
                "event": "replace",
                "seconds": seconds,
                "client": client_id,
                "successor": successor,
                "version": version,
                "epochs": epochs,
            }
        case Left(seconds, client_id, reason):
            why = {} if reason is None else {"reason": reason}
            return {"event": "leave", "seconds": seconds, "client": client_id, **why}
        case Evaluated() | Waiting():
            return None
        case Finished(seconds, version, digest):
            return {
                "event": "finish",
                "seconds": seconds,
                "version": version,
                "parameters_sha256": digest,
            }
