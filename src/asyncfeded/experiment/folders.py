"""The folder of a run's results: it belongs to one run at a time, and nothing else is touched."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile

from asyncfeded.core.errors import FileError
from asyncfeded.experiment.begun import forget, is_begun, is_finished, tidy
from asyncfeded.learning.saving import MODEL_FILE
from asyncfeded.store.lock import locked

RUN_FILES = (
    *("summary.json", "events.jsonl", "accuracy.csv", "accuracy.png", "clients.csv"),
    MODEL_FILE,
)
COMPARISON_FILES = ("summary.json", "compare.csv", "compare.png")


@contextmanager
def result_folders(folders: Mapping[Path, Iterable[str]], overwrite: bool) -> Iterator[None]:
    """Make folders ready for the files named, and keep other runs out of them.

    A file that is there already is refused; with `overwrite` it is deleted, so that what is in a
    folder afterwards is of one run. The summary is written last: a folder that has one which says
    `"finished": true` is complete.
    """
    with _locked(folders):
        for folder in (folder for folder, names in folders.items() if names and is_begun(folder)):
            if not (overwrite or is_finished(folder)):
                raise FileError(
                    f"out {str(folder)!r} holds a run that was interrupted: go on with it by "
                    f"asyncfeded resume {quote(str(folder))}, choose another folder, or give "
                    "--overwrite"
                )
        there = [folder / name for folder, names in folders.items() for name in names]
        there = [path for path in there if os.path.lexists(path)]
        if there and not overwrite:
            path = there[0]
            raise FileError(
                f"out {str(path.parent)!r} holds {path.name}, which this run would write: choose "
                "another folder, or give --overwrite"
            )
        for folder in (folder for folder, names in folders.items() if names):
            forget(folder)
        for path in there:
            try:
                path.unlink()
            except OSError as error:
                raise _unwritable(path.parent, error) from None
        yield


@contextmanager
def folders_to_go_on_in(folders: Iterable[Path]) -> Iterator[None]:
    """Keep other runs out of folders in which a run goes on."""
    with _locked(folders):
        for folder in folders:
            tidy(folder)
        yield


@contextmanager
def _locked(folders: Iterable[Path]) -> Iterator[None]:
    with ExitStack() as locks:
        for folder in folders:
            _make(folder)
            in_use = (
                f"out {str(folder)!r} is in use by another run: wait for its end, or choose "
                "another folder"
            )
            locks.enter_context(locked(folder, in_use))
        yield


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: Exception) -> FileError:
    reason = getattr(error, "strerror", None) or error
    return FileError(f"out {str(folder)!r} cannot be written: {reason}")
