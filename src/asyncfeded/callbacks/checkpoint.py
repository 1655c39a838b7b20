"""Save a run to a folder, so that another process can go on with it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import floor
from pathlib import Path

from asyncfeded.core.errors import FileError, StateError, require
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Event, Finished, Started
from asyncfeded.runtime.saved import Saved
from asyncfeded.store.codec import decode, encode
from asyncfeded.store.disk import RealDisk
from asyncfeded.store.journal import Journal
from asyncfeded.store.states import tree_of

WALL_SECONDS = 60.0
"""How often a run is saved if nothing else is said, in seconds of real time."""
LARGEST_SHARE = 0.02
"""At most this share of real time goes into saving, unless `every` asks for more."""
LOG_FILE = "events.jsonl"
"""The log of a run that keeps no other: a run goes on only with its whole log."""


class Checkpoint:
    """Save the run to `folder` every so many seconds of the run.

        federate(model, datasets, callbacks=[Checkpoint("saved", every=60)])
        federate(model, datasets, resume="saved")  # in another process, after a crash

    The second call goes on from the last save, with the same bits as without the crash. Model,
    data and settings must be the same; the number of workers may change. Without `every`, a run is
    saved about once in a minute of real time. The folder is empty again once the run has reached
    its end.

    Callbacks with `state()` and `restore(state)` are saved and restored too, as all of ours are.
    """

    def __init__(self, folder: str | Path, every: float | None = None) -> None:
        require(every is None or every > 0, "every", "above 0", every)
        self.folder = Path(folder)
        self._every = every
        self._journal: Journal | None = None
        self._next = 0.0
        self._finished = False

    @contextmanager
    def opened(self, resume: bool) -> Iterator[Saved | None]:
        """Keep the folder for this process; gives the saved run to go on with, if asked to."""
        if resume and not self.folder.is_dir():
            raise self._nothing_saved()
        with RealDisk(self.folder) as disk:
            self._journal = Journal(disk)
            if self._journal.is_new and resume:
                raise self._nothing_saved()
            if not self._journal.is_new and not resume:
                raise FileError(
                    f"checkpoint {str(self.folder)!r} holds a saved run: go on with it by "
                    "resume=…, remove it, or choose another folder"
                )
            self._next, self._finished = 0.0, False
            yield _run_in(self._journal.read_snapshot()) if resume else None
            if self._finished:
                for name in sorted(disk.names(), reverse=True):  # the snapshot first
                    if name.startswith(("snapshot-", "journal-")) or name == LOG_FILE:
                        disk.delete(name)

    def _nothing_saved(self) -> StateError:
        return StateError(
            f"resume {str(self.folder)!r} must be a folder that holds a saved run; it holds none: "
            "begin the run anew"
        )

    @property
    def log_path(self) -> Path:
        """Where the log is kept if nobody else keeps it."""
        return self.folder / LOG_FILE

    def __call__(self, event: Event, run: Run) -> None:
        """Save the run before the next signal, if it is time to."""
        if self._journal is None:
            raise FileError("Checkpoint must be given to federate, which opens its folder")
        if isinstance(event, Finished):
            self._finished = True
        elif isinstance(event, Started) or self._next == 0.0:
            self._set_next(event.seconds, 0.0)
        elif self._now(event.seconds) >= self._next:
            self._next = float("inf")
            run.when_at_rest(lambda: self._save(run, event.seconds))

    def _save(self, run: Run, seconds: float) -> None:
        assert self._journal is not None
        began = time.monotonic()
        self._journal.snapshot(encode(tree_of(run.state())))
        self._set_next(seconds, time.monotonic() - began)

    def _now(self, seconds: float) -> float:
        return time.monotonic() if self._every is None else seconds

    def _set_next(self, seconds: float, taken: float) -> None:
        if self._every is None:
            self._next = time.monotonic() + max(WALL_SECONDS, taken / LARGEST_SHARE)
        else:
            self._next = self._every * (floor(seconds / self._every) + 1)


def _run_in(content: memoryview) -> Saved:
    saved = decode(bytes(content))
    if not isinstance(saved, dict):
        raise StateError("the saved state is damaged: it is not the state of a run")
    return saved
