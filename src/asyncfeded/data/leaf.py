"""LEAF's json folders: train/ and test/ with shards of users, num_samples and user_data.

Sebastian Caldas et al., arXiv:1812.01097. A shard holds the whole data of some users, and every
shard of train/ has a counterpart in test/: all_data_0_niid_05_keep_0_train_9.json goes with
all_data_0_niid_05_keep_0_test_9.json.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncfeded.core.errors import FileError
from asyncfeded.reading import parse_json, read_bytes

SIDES = ("train", "test")
MAX_SHARD_BYTES = 4 << 30
"""The largest shard, because a shard is read at once."""


@dataclass(frozen=True, slots=True)
class LeafUser:
    """One side of a user's data, and the file it was read from."""

    name: str
    side: str
    file: Path
    x: list[Any]
    y: list[Any]

    def fault(self, what: str) -> FileError:
        """An error that names the file and this user."""
        return FileError(f"{str(self.file)!r}, user {self.name!r:.80}: {what}")


def is_leaf(folder: Path) -> bool:
    """Whether a folder looks like LEAF's."""
    return all((folder / side).is_dir() for side in SIDES)


def leaf_files(folder: Path) -> dict[str, list[Path]]:
    """The shards of both sides; a missing shard is an error."""
    files = {side: sorted((folder / side).glob("*.json")) for side in SIDES}
    for side, found in files.items():
        if not found:
            raise FileError(
                f"{str(folder)!r} is not a folder of LEAF's: it must have {side}/ with .json "
                "files, as LEAF's preprocess.sh writes them"
            )
    for side, other in (SIDES, SIDES[::-1]):
        names = {path.name for path in files[other]}
        for path in files[side]:
            before, found_side, after = path.name.rpartition(side)
            if found_side and f"{before}{other}{after}" not in names:
                missing = folder / other / f"{before}{other}{after}"
                raise FileError(f"{str(missing)!r} is missing: it is the other side of {path.name}")
        _check_numbering(folder / side, files[side])
    return files


def read_leaf(folder: Path) -> Iterator[LeafUser]:
    """Read users shard by shard, train/ first; every user comes once per side."""
    for side, files in leaf_files(folder).items():
        seen: dict[str, Path] = {}
        for file in files:
            for user in _read_shard(file, side):
                if user.name in seen:
                    raise user.fault(f"is also in {seen[user.name].name}: a user has one shard")
                seen[user.name] = file
                yield user


def _check_numbering(folder: Path, files: list[Path]) -> None:
    """Refuse a gap in the numbers of the shards, which LEAF counts from 0: a shard is missing."""
    numbers = {int(m[1]): path for path in files if (m := re.match(r"all_data_(\d+)_", path.name))}
    for number in range(max(numbers, default=-1)):
        if number not in numbers:
            some = next(iter(numbers.values())).name
            missing = re.sub(r"all_data_\d+_", f"all_data_{number}_", some)
            raise FileError(
                f"{str(folder / missing)!r} is missing: there are shards up to {max(numbers)}"
            )


def _read_shard(file: Path, side: str) -> Iterator[LeafUser]:
    shard = read_json(file)
    try:
        users, counts, data = shard["users"], shard["num_samples"], shard["user_data"]
        pairs = list(zip(users, counts, strict=True))
    except (KeyError, TypeError, ValueError):
        raise FileError(
            f"{str(file)!r} is not a shard of LEAF's: it must be an object with users, "
            "num_samples (one per user) and user_data"
        ) from None
    for name, count in pairs:
        check_name(file, name)
        try:
            user = LeafUser(name, side, file, data[name]["x"], data[name]["y"])
            sizes = len(user.x), len(user.y)
        except (KeyError, TypeError):
            raise FileError(
                f"{str(file)!r}, user {name!r:.80}: user_data must have lists x and y for this user"
            ) from None
        if sizes != (count, count):
            raise user.fault(
                f"num_samples says {count!r:.40}, but x has {sizes[0]} and y has {sizes[1]}"
            )
        if count == 0:
            raise user.fault("has no samples: remove it from users and num_samples")
        yield user


def check_name(file: Path, name: object) -> None:
    """Refuse a name that is no text, or that cannot be written to a file."""
    try:
        if isinstance(name, str) and name.encode():
            return
    except UnicodeEncodeError:
        pass
    raise FileError(f"{str(file)!r}: a name must be a text of valid characters; given {name!r:.80}")


def read_json(file: Path) -> Any:
    """Read a json file, or say in one line what is wrong with it."""
    try:
        return json_of(file, read_bytes(file, MAX_SHARD_BYTES))
    except OSError as error:
        raise FileError(f"{str(file)!r} cannot be read: {error.strerror}") from None


def json_of(file: Path, content: bytes | bytearray) -> Any:
    """Parse the content of a json file."""
    try:
        return parse_json(content)
    except ValueError as error:
        raise FileError(f"{str(file)!r} is not json: {error}; fetch or make it again") from None
