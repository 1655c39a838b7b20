"""What was begun in a folder of results, so that `asyncfeded resume` can go on with it.

    OUT/checkpoint/run.json       the command and its settings, written before anything else
    OUT/checkpoint/snapshot-…     the run itself, from its first save on (callbacks/checkpoint.py)
    OUT/checkpoint/journal-…

The folder `checkpoint` goes when all results are there.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from asyncfeded import own_code
from asyncfeded.callbacks.checkpoint import LOG_FILE
from asyncfeded.core.errors import FileError, StateError
from asyncfeded.files import write_json
from asyncfeded.reading import read_json
from asyncfeded.version import __version__

CHECKPOINT = "checkpoint"
BEGUN_FILE = "run.json"
SUMMARY_FILE = "summary.json"
FORMAT = 1

_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.unfinished")
_OURS = re.compile(
    rf"{BEGUN_FILE}|{LOG_FILE}|snapshot-\d+\.(bin|unfinished)|journal-\d+\.log|{_UNFINISHED.pattern}"
)
_KEY = re.compile(r"[0-9a-f]{16}")
"""The name of a folder in which one of several runs is saved."""


class Begun(BaseModel):
    """A command, its settings by name, its options beside these, and the folder it was given in.

    `code` has the digests of the files of the user's own rules and task.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int = FORMAT
    package_version: str = __version__
    command: str
    settings: dict[str, Any]
    options: dict[str, Any]
    folder: str
    code: dict[str, str]


def make_begun(command: str, settings: Mapping[str, Any], **options: Any) -> Begun:
    """Describe a command that is about to begin."""
    return Begun(
        command=command,
        settings={name: value for name, value in settings.items() if name != "out"},
        options=options,
        folder=str(Path.cwd()),
        code=_digests_of_code(settings),
    )


def saved_in(out: Path) -> Path:
    """The folder in which the run of a folder of results is saved."""
    return out / CHECKPOINT


def write_begun(out: Path, begun: Begun) -> None:
    """Write down what begins in a folder of results."""
    folder = saved_in(out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{str(folder)!r} cannot be made: {error.strerror}") from None
    write_json(folder / BEGUN_FILE, begun.model_dump(mode="json"))


def is_begun(out: Path) -> bool:
    """Whether a folder has something to go on with."""
    return (saved_in(out) / BEGUN_FILE).is_file()


def is_finished(out: Path) -> bool:
    """Whether all results are there."""
    path = out / SUMMARY_FILE
    summary = read_json(path) if path.is_file() else None
    return isinstance(summary, dict) and summary.get("finished") is True


def read_begun(out: Path) -> Begun:
    """Read what was begun in a folder and is not finished."""
    path = saved_in(out) / BEGUN_FILE
    if is_finished(out):
        raise StateError(f"resume {str(out)!r}: its run is finished already, see {SUMMARY_FILE}")
    if not path.is_file():
        hint = "begin one by asyncfeded run --out FOLDER"
        if any(out.glob("snapshot-*.bin")):
            hint = "what a Checkpoint in Python has saved goes on by federate(resume=…)"
        raise StateError(
            f"resume {str(out)!r} must be the folder of a run that was interrupted; it holds none: "
            f"{hint}"
        )
    content = read_json(path)
    if isinstance(content, dict):
        _check_versions(path, content)
    try:
        return Begun.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise StateError(f"{str(path)!r} is damaged: {place}: {first['msg']}") from None


def check_code(begun: Begun) -> None:
    """Refuse to go on with other code of the user's than the run has begun with."""
    now = _digests_of_code(begun.settings)
    for name, digest in begun.code.items():
        if now.get(name) != digest:
            raise StateError(
                f"{name} has changed since the run began: put it back as it was, or begin anew in "
                "another folder"
            )


def forget(out: Path) -> None:
    """Delete what was saved in a folder of results, and nothing of anybody else's."""
    folder = saved_in(out)
    for path in _left_over(folder):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # somebody keeps a file of his own there
        for path in sorted(folder.glob("*/"), reverse=True):
            if _KEY.fullmatch(path.name):
                path.rmdir()
        folder.rmdir()


def tidy(out: Path) -> None:
    """Delete files that a process was writing when it was killed."""
    for path in out.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink()


def _left_over(folder: Path) -> list[Path]:
    """The files of ours in a folder of saved runs, in the order in which they may go."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _OURS.fullmatch(path.name)]
    found.sort(key=lambda path: (path.name != BEGUN_FILE, not path.name.startswith("snap")))
    parts = (part for part in sorted(folder.iterdir()) if _KEY.fullmatch(part.name))
    return found + [path for part in parts for path in _left_over(part)]


def _check_versions(path: Path, content: Mapping[str, Any]) -> None:
    version, form = content.get("package_version"), content.get("format")
    if (version, form) != (__version__, FORMAT):
        raise StateError(
            f"{str(path)!r} was written by asyncfeded {version!s:.20}, this is {__version__}: go "
            "on with the version that wrote it, or begin anew in another folder"
        )


def _digests_of_code(settings: Mapping[str, Any]) -> dict[str, str]:
    """The digests of the user's own files, as far as rules and task are given by a file."""
    found = {}
    for kind in ("rule", "task"):
        given = settings.get(kind, [])
        for name in given if isinstance(given, list | tuple) else [given]:
            path = own_code.file_of(str(name))
            if path is not None and path.is_file():
                found[f"{kind} {name!r}"] = sha256(path.read_bytes()).hexdigest()
    return found
