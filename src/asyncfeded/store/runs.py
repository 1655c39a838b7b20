"""Finished runs, each in a file named by the digest of its settings.

What is in the store is whole, whenever the process that wrote it was killed. Two processes may
share a store.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from asyncfeded.core.errors import FileError
from asyncfeded.files import write_json
from asyncfeded.reading import parse_json, read_bytes

KEY_LENGTH = 16
MOST_BYTES = 64 * 2**20
"""More than any record has, and small enough to read."""


def run_key(settings: Mapping[str, Any]) -> str:
    """The name of the run with these settings, whatever their order."""
    text = json.dumps(settings, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:KEY_LENGTH]


class RunStore:
    """A folder of finished runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"store {str(folder)!r} cannot be made: {error.strerror}") from None

    def __iter__(self) -> Iterator[str]:
        """The names of all runs that are there, in order."""
        return iter(sorted(path.stem for path in self.folder.glob("*.json")))

    def __contains__(self, key: str) -> bool:
        return self._path(key).exists()

    def get(self, key: str) -> dict[str, Any]:
        """Read a run that is there."""
        path = self._path(key)
        try:
            record = parse_json(read_bytes(path, MOST_BYTES))
        except OSError as error:
            raise FileError(f"run {str(path)!r} cannot be read: {error.strerror}") from None
        except ValueError:
            record = None
        if not isinstance(record, dict) or record.get("key") != key:
            raise self.damaged(key)
        return record

    def damaged(self, key: str) -> FileError:
        """What to say of a run that cannot be understood."""
        path = str(self._path(key))
        return FileError(f"run {path!r} is damaged: remove the file, and it will be run again")

    def put(self, record: Mapping[str, Any]) -> None:
        """Keep a run by its own key."""
        write_json(self._path(record["key"]), record, indent=None)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
