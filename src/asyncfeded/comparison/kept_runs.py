"""The runs of a comparison in a folder, so that another process can go on with it.

    FOLDER/KEY.bin       a finished run: a digest of the rest, what it was made with, its result
    FOLDER/KEY/          the run at work, as a `Checkpoint` saves it

The key is a digest of what a run is made with: of its settings and its initial model.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from asyncfeded.callbacks.checkpoint import Checkpoint, is_saved
from asyncfeded.core.errors import FileError, SettingError, StateError
from asyncfeded.federation import Federation
from asyncfeded.files import write_bytes
from asyncfeded.learning.flat import FlatModule
from asyncfeded.reading import MOST_BYTES, read_bytes
from asyncfeded.result import Result
from asyncfeded.runtime.saved import restoring
from asyncfeded.store.codec import decode, encode
from asyncfeded.store.lock import locked
from asyncfeded.store.runs import run_key
from asyncfeded.store.states import VERSION, check_same_run

ENDED = ("versions", "log_sha256", "wall_seconds", "finished", "stopped_by")
"""What a result knows at its end, beside its state."""

DIGEST_BYTES = 32


class KeptRuns:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, federation: Federation) -> Result:
        """The result of a run that is kept, or of one that begins or goes on now."""
        if any(isinstance(callback, Checkpoint) for callback in federation.callbacks):
            raise SettingError(
                "callbacks must be without a Checkpoint where checkpoint=… is given, which saves "
                "every run"
            )
        identity = _identity(federation)
        key = run_key({name: value for name, value in identity.items() if name != VERSION})
        path, saved = self._folder / f"{key}.bin", self._folder / key
        if path.exists():
            return _read(path, federation, identity)
        checkpoint, goes_on = Checkpoint(saved), is_saved(saved)
        if not goes_on:  # the log of a process that had not saved anything yet
            checkpoint.log_path.unlink(missing_ok=True)
        result = replace(
            federation,
            callbacks=[*federation.callbacks, checkpoint],
            resume=saved if goes_on else None,
            write=partial(_write, path, identity),
        ).run()
        with suppress(OSError):  # there is something else in it
            saved.rmdir()
        return result


@contextmanager
def kept_runs(folder: Path) -> Iterator[KeptRuns]:
    """Keep a folder for this process; it is made if it is not there."""
    in_use = (
        f"checkpoint {str(folder)!r} is in use by another comparison: wait for its end, or choose "
        "another folder"
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"checkpoint {str(folder)!r} cannot be made: {error.strerror}") from None
    with locked(folder, in_use):
        yield KeptRuns(folder)


def _identity(federation: Federation) -> dict[str, Any]:
    flat = FlatModule(deepcopy(federation.module))
    return {
        **federation.identity(flat.schema),
        "initial_model": sha256(flat.array.tobytes()).hexdigest(),
    }


def _write(path: Path, identity: Mapping[str, Any], result: Result) -> None:
    ended = {name: getattr(result, name) for name in ENDED}
    content = encode({"run": identity, "result": result.state(), "ended": ended})
    write_bytes(path, sha256(content).digest() + content)


def _read(path: Path, federation: Federation, identity: Mapping[str, Any]) -> Result:
    """The result in a file; what it holds is checked."""
    result = federation.begin_result()
    try:
        saved = _checked(bytes(read_bytes(path, MOST_BYTES)))
        with restoring("result"):
            check_same_run(saved, identity)
            result.restore(saved["result"])
            for name in ENDED:
                setattr(result, name, saved["ended"][name])
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None
    except StateError as error:
        message = f"{str(path)!r}: {error}; without the file its run is made again"
        raise StateError(message) from None
    return result


def _checked(content: bytes) -> Any:
    """What was written, if it is whole."""
    digest, content = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if sha256(content).digest() != digest:
        raise StateError("it is damaged: its digest does not match")
    return decode(content)
