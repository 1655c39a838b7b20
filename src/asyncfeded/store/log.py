"""The log of a run: one JSON object per line, and the digest of all lines.

The log holds what trains the model: who joined, arrived, lost a round and left, when, and with what
effect, to the last bit of every number. It does not hold evaluations and waiting, which only look.
Two runs with the same `sha256` are the same run.
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from asyncfeded.core.errors import AsyncFedEDError, FileError, RuleError, StateError, require
from asyncfeded.core.messages import Receipt
from asyncfeded.runtime.events import (
    Evaluated,
    Event,
    Finished,
    Joined,
    Left,
    Received,
    Replaced,
    Resumed,
    RoundLost,
    Started,
    Waiting,
)
from asyncfeded.runtime.saved import Saved


def _plain(value: object) -> object:
    """A number of NumPy's as one of Python's, which alone JSON takes."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain)
_ENCODED_AT_ONCE = 32
"""Some 8 kB of lines. One by one, between rounds of training, they cost half as much again."""
_READ_AT_ONCE = 2**20


class EventLog:
    """A callback that writes events to a file as they happen, or only digests them without a file.

    A `with` block opens the file and closes it.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._digest = sha256()
        self._records: list[dict[str, Any]] = []
        self._rule = ""
        self._failed = False
        require(path is None or isinstance(path, str | Path), "log", "a path", path)
        self._path = None if path is None else Path(path)
        self._file: BinaryIO | None = None
        self._resumed: Saved | None = None

    def __call__(self, event: Event, _: object) -> None:
        """Add an event of a run."""
        self.write(event)

    def write(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, Received):
            if not _FIELDS.isdisjoint(event.receipt.figures):
                raise self._taken_name(event.receipt)
        elif isinstance(event, Started):
            self._rule = event.rule
        record = as_record(event)
        if record is not None:
            self._records.append(record)
            if len(self._records) == _ENCODED_AT_ONCE:
                self._encode()

    @property
    def sha256(self) -> str:
        """The digest of the log so far: what `sha256sum` says of the file once it is closed.

        Of a file that could not be written there is none.
        """
        self._encode()
        return "" if self._failed else self._digest.hexdigest()

    @property
    def has_file(self) -> bool:
        """Whether the events are kept, so that a run can go on with them."""
        return self._path is not None

    def state(self) -> Saved:
        """How far the file is on the disk, and its digest until there."""
        assert self._file is not None
        self._encode()
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            return {"size": self._file.tell(), "sha256": self.sha256, "rule": self._rule}
        except OSError as error:
            raise self._unwritable(error) from None

    def restore(self, state: Saved) -> None:
        """Go on with the file that an earlier process has written, once it is opened."""
        self._resumed, self._rule = state, str(state["rule"])

    def _encode(self) -> None:
        if not self._records:
            return
        records, self._records = self._records, []
        lines: list[str] = []
        failure = None
        try:
            for record in records:
                lines.append(f"{_ENCODER.encode(record)}\n")
        except (TypeError, ValueError):
            failure = self._not_a_number(records[len(lines)])
        content = "".join(lines).encode()
        self._digest.update(content)
        if self._file is not None:
            try:
                self._file.write(content)
            except OSError as error:
                raise self._unwritable(error) from None
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        try:
            self._file = None if self._path is None else self._opened(self._path)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        if self._resumed is not None:
            try:
                self._go_on(int(self._resumed["size"]), self._resumed["sha256"])
            except BaseException:
                self._close()
                raise
        return self

    def _opened(self, path: Path) -> BinaryIO:
        return path.open("wb") if self._resumed is None else path.open("r+b")

    def _go_on(self, size: int, digest: str) -> None:
        """Take in what the file holds up to `size`, and cut off what came after it."""
        assert self._file is not None
        missing = size
        try:
            while part := self._file.read(min(missing, _READ_AT_ONCE)):
                self._digest.update(part)
                missing -= len(part)
            if missing or self._digest.hexdigest() != digest:
                raise StateError(
                    f"log {str(self._path)!r} is not the log of the saved run: its first {size} "
                    "bytes have changed since; begin the run anew in another folder"
                )
            self._file.truncate(size)
        except OSError as error:
            raise self._unwritable(error) from None

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        failures: list[AsyncFedEDError] = []
        for step in (self._encode, self._close):
            try:
                step()
            except (FileError, RuleError) as error:
                failures.append(error)
        if failures and kind is None:  # otherwise what ended the run is the error to be seen
            raise failures[0]

    def _close(self) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: Exception) -> FileError:
        self._failed = True
        reason = getattr(error, "strerror", None) or error
        return FileError(f"log {str(self._path)!r} cannot be written: {reason}")

    def _taken_name(self, receipt: Receipt) -> RuleError:
        name = next(name for name in receipt.figures if name in _FIELDS)
        return RuleError(
            f"rule {self._rule!r} must not name a figure {name!r}, which is a field of the log: "
            "give the figure another name"
        )

    def _not_a_number(self, record: dict[str, Any]) -> RuleError:
        given = {name: value for name, value in record.items() if not _is_encodable(value)}
        return RuleError(
            f"rule {self._rule!r} must give figures that are finite numbers; given {given}"
        )


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
        case RoundLost(seconds, client_id, number, reason, version):
            return {
                "event": "lose",
                "seconds": seconds,
                "client": client_id,
                "round": number,
                "reason": reason,
                "version": version,
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
        case Evaluated() | Waiting() | Resumed():
            return None
        case Finished(seconds, version, digest):
            return {
                "event": "finish",
                "seconds": seconds,
                "version": version,
                "parameters_sha256": digest,
            }


def _is_encodable(value: object) -> bool:
    try:
        _ENCODER.encode(value)
    except (TypeError, ValueError):
        return False
    return True


_FIELDS = {
    name
    for event in (
        Started(0.0, "", ""),
        Joined(0.0, "", 1, 1),
        Received(0.0, 0, 1, 1, Receipt("", True, 1)),
        RoundLost(0.0, "", 0, "", 1),
        Replaced(0.0, "", "", 1, 1),
        Left(0.0, "", ""),
        Finished(0.0, 1, ""),
    )
    for name in as_record(event) or ()
}
"""The names that the log itself uses."""
