"""Save a run to a folder, so that another process can go on with it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from math import floor, inf
from pathlib import Path
from typing import NamedTuple

from asyncfeded.core.errors import FileError, StateError, require
from asyncfeded.core.server import Server
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Event, Finished, Resumed, Started
from asyncfeded.runtime.saved import Saved
from asyncfeded.runtime.transport import Transport
from asyncfeded.store.codec import decode, encode_in_pieces, size_of
from asyncfeded.store.disk import Disk, RealDisk
from asyncfeded.store.durable import Durable
from asyncfeded.store.group_commit import GroupCommit
from asyncfeded.store.journal import Journal
from asyncfeded.store.signals import decoded
from asyncfeded.store.states import tree_of

WALL_SECONDS = 60.0
"""Seconds of real time between two saves, unless `every` is given."""
LARGEST_SHARE = 0.02
"""Saving takes at most this share of real time, unless `every` asks for more."""
LARGEST_JOURNAL = 2**30
"""A journal with more bytes than this and than four snapshots is replaced by a new snapshot."""
LOG_FILE = "events.jsonl"
"""Where the log is kept if the caller keeps none: a run goes on only with its whole log."""


OVER = b""
"""The snapshot of a run that is over: there is nothing to go on with."""
Writer = Journal | GroupCommit


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved run to go on with."""
    return any(folder.glob("snapshot-*.bin"))


class SavedRun(NamedTuple):
    """A run to go on with: its state, and the time in the run at which its process ended."""

    state: Saved
    seconds: float


class Checkpoint:
    """Save the run to `folder` after every `every` seconds of the run.

        federate(model, datasets, callbacks=[Checkpoint("saved", every=60)])
        federate(model, datasets, resume="saved")  # in another process, after a crash

    The second call goes on from the last save, with the same bits as without the crash. Model, data
    and settings must be the same; the number of workers may change. Without `every`, a run is
    saved about once in a minute of real time. The folder is empty again once the run has reached
    its end.

    In real time, no acknowledged update is lost: every signal of a client is written to a journal
    in the folder, and is safe on the disk, before the client gets its answer.

    Callbacks with `state()` and `restore(state)` are saved and restored too, as all of ours are.
    """

    def __init__(self, folder: str | Path, every: float | None = None) -> None:
        require(every is None or every > 0, "every", "above 0", every)
        self.folder = Path(folder)
        self.largest_journal = LARGEST_JOURNAL
        self._every = every
        self._journal: Journal | None = None
        self._records: Writer | None = None
        self._durable: Durable | None = None
        self._next = inf
        self._snapshot_bytes = 0
        self._finished = False

    @property
    def log_path(self) -> Path:
        """Where the log is kept if the caller keeps none."""
        return self.folder / LOG_FILE

    @contextmanager
    def opened(self, resume: bool) -> Iterator[SavedRun | None]:
        """Lock the folder for this process; yield the saved run to go on with, if `resume`."""
        if resume and not self.folder.is_dir():
            raise self._nothing_saved()
        with RealDisk(self.folder) as disk, self.opened_on(disk, Journal(disk), resume) as saved:
            yield saved

    @contextmanager
    def opened_on(self, disk: Disk, journal: Journal, resume: bool) -> Iterator[SavedRun | None]:
        """The same for a folder on any disk, with its journal."""
        self._journal = journal
        content = b"" if journal.is_new else bytes(journal.read_snapshot())
        if content == OVER and resume:
            raise self._nothing_saved()
        if content != OVER and not resume:
            raise FileError(
                f"checkpoint {str(self.folder)!r} holds a saved run: go on with it by "
                "resume=…, remove it, or choose another folder"
            )
        self._next, self._finished, self._durable = inf, False, None
        self._records = None
        yield _saved_run(journal, content) if resume else None
        if self._finished:
            with suppress(FileError, OSError):  # the run has its result; what stays does no harm
                _empty(disk, journal)

    @contextmanager
    def keeping_signals(
        self,
        transport: Transport,
        server: Server,
        writing: Callable[[Journal], AbstractContextManager[Writer]] = GroupCommit,
    ) -> Iterator[Transport]:
        """A transport whose signals are safe before they are answered; it replays those kept."""
        assert self._journal is not None
        journal = self._journal
        replayed = () if journal.is_new else (decoded(bytes(c)) for _, c in journal.records())
        with writing(journal) as self._records:
            self._durable = Durable(transport, self._records, server, replayed)
            yield self._durable

    def __call__(self, event: Event, run: Run) -> None:
        """Save the run before the next signal, if it is time to."""
        if self._journal is None:
            raise FileError("Checkpoint must be given to federate, which opens its folder")
        if isinstance(event, Finished):
            self._finished = True
        elif isinstance(event, Started | Resumed):
            self._set_next(event.seconds, 0.0)
            if isinstance(event, Started) and self._durable is not None:
                run.when_at_rest(lambda: self._save(run, 0.0))
        elif self._is_due(event.seconds):
            self._next = inf
            run.when_at_rest(lambda: self._save(run, event.seconds))

    def _is_due(self, seconds: float) -> bool:
        if self._next == inf:
            return False
        if self._durable is not None and self._records is not None:
            if self._durable.replaying:
                return False
            if self._records.size > max(self.largest_journal, 4 * self._snapshot_bytes):
                return True
        return (time.monotonic() if self._every is None else seconds) >= self._next

    def _save(self, run: Run, seconds: float) -> None:
        began = time.monotonic()
        content = encode_in_pieces(tree_of(run.state()))
        journal = self._journal if self._records is None else self._records
        assert journal is not None
        journal.snapshot(*content)
        self._snapshot_bytes = size_of(content)
        self._set_next(seconds, time.monotonic() - began)

    def _set_next(self, seconds: float, taken: float) -> None:
        if self._every is None:
            self._next = time.monotonic() + max(WALL_SECONDS, taken / LARGEST_SHARE)
        else:
            self._next = self._every * (floor(seconds / self._every) + 1)

    def _nothing_saved(self) -> StateError:
        return StateError(
            f"resume {str(self.folder)!r} must be a folder that holds a saved run; it holds none: "
            "begin the run anew"
        )


def _empty(disk: Disk, journal: Journal) -> None:
    """Delete the files of a run that is over, so that a crash leaves all of it or nothing."""
    if not journal.is_new:
        journal.snapshot(OVER)
    disk.sync_folder()  # what came before the newest snapshot goes before it
    for name in sorted(disk.names(), reverse=True):  # the snapshot first
        if name.startswith(("snapshot-", "journal-")) or name == LOG_FILE:
            disk.delete(name)
            disk.sync_folder()


def _saved_run(journal: Journal, content: bytes) -> SavedRun:
    """Read the state in the last snapshot, and when the last signal after it came."""
    state = decode(content)
    if not isinstance(state, dict) or not isinstance(state.get("seconds"), float):
        raise StateError("the saved state is damaged: it is not the state of a run")
    last = None
    for _, last in journal.records():  # noqa: B007 - only the last one counts
        pass
    seconds = state["seconds"]
    return SavedRun(state, seconds if last is None else max(seconds, decoded(bytes(last)).seconds))
