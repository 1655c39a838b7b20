"""The sources of roles: a file of texts, LEAF's json, or a file fetched from the hub."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from asyncfeded.core.errors import FileError
from asyncfeded.data.cache import cached
from asyncfeded.data.leaf import (
    LeafUser,
    check_name,
    is_leaf,
    json_of,
    leaf_files,
    read_leaf,
)
from asyncfeded.data.roles import WINDOW, Role, Roles, encode
from asyncfeded.reading import read_bytes

FETCHED = "shakespeare.safetensors"
ROLES_FILES = ("roles.json", "roles.json.gz")
MAX_ROLES_BYTES = 1 << 30
OUT_OF_ORDER = (
    "its windows do not follow one another, so none can be kept apart from training for "
    "testing: give each role's windows in the order of its text"
)


def load_roles(folder: Path) -> Roles:
    """Read a folder with LEAF's json, a roles file, or a fetched file."""
    if (folder / FETCHED).is_file():
        return Roles.read(folder / FETCHED)
    for name in ROLES_FILES:
        if (file := folder / name).is_file():
            return cached(Roles, folder, [file], partial(read_roles, file))
    if not is_leaf(folder):
        raise FileError(
            f"{str(folder)!r} must have {' or '.join(ROLES_FILES)}, or train/ and test/ with "
            "LEAF's .json files; it has neither"
        )
    files = [file for side in leaf_files(folder).values() for file in side]
    return cached(Roles, folder, files, lambda: read_leaf_roles(folder))


def read_roles(file: Path) -> Roles:
    """Read a file of roles, {role: {play, speaker, text}}, as json or gzipped json."""
    content = json_of(file, _unpacked(file))
    if not isinstance(content, dict) or not content:
        raise FileError(f"{str(file)!r} must be an object of roles, {{role: {{…, text}}}}")
    return Roles.gather(_role(file, name, entry) for name, entry in content.items())


def read_leaf_roles(folder: Path) -> Roles:
    """Read LEAF's json folders: the windows of train/ and of test/, joined to text again.

    Both sides go into one role, in order: the split is made here, for all sources alike.
    """
    sides: dict[str, list[Role]] = {}
    for user in read_leaf(folder):
        role = role_from_windows(user.name, _pairs(user))
        if len(role.stretches) > 1:
            raise user.fault(f"{OUT_OF_ORDER} (LEAF's -s niid, not -s iid)")
        sides.setdefault(user.name, []).append(role)
    if not sides:
        raise FileError(f"{str(folder)!r} has no users in any of its shards")
    return Roles.gather(_joined(parts) for parts in sides.values())


def role_from_windows(name: str, windows: Iterable[tuple[str, str]]) -> Role:
    """Join windows (80 characters and the next); windows that follow each other make a stretch."""
    stretches: list[list[str]] = []
    expected = None
    for text, following in windows:
        if text != expected:
            stretches.append([text])
        stretches[-1].append(following)
        expected = text[1:] + following
    texts = ["".join(parts) for parts in stretches]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return Role(name, encode("".join(texts)), lengths)


def _joined(parts: Sequence[Role]) -> Role:
    """One role from both sides of LEAF's split."""
    codes = np.concatenate([part.codes for part in parts])
    return Role(parts[0].name, codes, np.concatenate([part.stretches for part in parts]))


def _unpacked(file: Path) -> bytes | bytearray:
    try:
        if file.suffix != ".gz":
            return read_bytes(file, MAX_ROLES_BYTES)
        with gzip.open(file) as stream:
            content = stream.read(MAX_ROLES_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{str(file)!r} cannot be read: {error}; fetch or make it again") from None
    if len(content) > MAX_ROLES_BYTES:
        raise FileError(f"{str(file)!r} must unpack to at most 1 GiB; it unpacks to more")
    return content


def _role(file: Path, name: str, entry: Any) -> Role:
    check_name(file, name)
    text = entry.get("text") if isinstance(entry, Mapping) else None
    if not isinstance(text, str):
        raise FileError(f"{str(file)!r}, role {name!r:.80}: must have a text")
    if not text.strip():
        raise FileError(f"{str(file)!r}, role {name!r:.80}: its text is empty: remove the role")
    return Role(name, encode(text), np.array([len(text)], dtype=np.int64))


def _pairs(user: LeafUser) -> Iterator[tuple[str, str]]:
    for index, (text, following) in enumerate(zip(user.x, user.y, strict=True)):
        if not isinstance(text, str) or len(text) != WINDOW:
            raise user.fault(f"every x must be {WINDOW} characters; sample {index} is not")
        if not isinstance(following, str) or len(following) != 1:
            raise user.fault(f"every y must be one character; sample {index} is not")
        yield text, following
