"""Shakespeare: the next character of a speaking role, one client per role.

Sebastian Caldas et al., arXiv:1812.01097: an example is a window of 80 characters and the one
after. Neighbouring windows share 79 of 80 characters, so windows are never stored: they are views
into the role's text. The first nine tenths of a role's windows are for training and the last tenth,
after a gap of a window's length, for testing: no character of a test example was seen in training.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from asyncfeded import randomness
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data.arrays import Arrays, read_about, read_arrays, write_arrays
from asyncfeded.data.cache import cached
from asyncfeded.data.federated import (
    TEST_SHARE,
    Examples,
    FederatedData,
    choose,
    client_names,
    held_out,
)
from asyncfeded.data.leaf import (
    LeafUser,
    check_name,
    check_size,
    is_leaf,
    leaf_files,
    parse_json,
    read_leaf,
)

WINDOW = 80
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""LEAF's characters, in LEAF's order."""
OTHER = len(LETTERS)
CLASSES = len(LETTERS) + 1
"""One class more, for every other character."""
MIN_EXAMPLES = 10_000
MAX_EXAMPLES = 1_000
OUT_OF_ORDER = (
    "its windows do not follow one another, so none can be kept apart from training for "
    "testing: give each role's windows in the order of its text"
)
FEWEST_WINDOWS = round((WINDOW + 1) / TEST_SHARE)
FETCHED = "shakespeare.safetensors"
ROLES_FILES = ("roles.json", "roles.json.gz")
MAX_ROLES_BYTES = 1 << 30

Codes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_CODE_OF = {letter: code for code, letter in enumerate(LETTERS)}


def encode(text: str) -> Codes:
    """The classes of a text's characters."""
    return np.fromiter((_CODE_OF.get(letter, OTHER) for letter in text), np.uint8, len(text))


def decode(codes: npt.NDArray[np.integer[Any]]) -> str:
    """The text of these classes; other characters come back as �."""
    return "".join((LETTERS + "�")[code] for code in codes)


@dataclass(frozen=True, slots=True)
class Role:
    """A role's text, in stretches of unbroken text: their lengths add up to the text's."""

    name: str
    codes: Codes
    stretches: Places


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles in compact arrays, one after the other.

    The text of role i lies from offsets[i] to offsets[i + 1] of `codes`, the lengths of its
    stretches from stretch_offsets[i] to stretch_offsets[i + 1] of `stretches`.
    """

    names: list[str]
    offsets: Places
    codes: Codes
    stretch_offsets: Places
    stretches: Places

    @classmethod
    def gather(cls, roles: Iterable[Role]) -> Self:
        """Lay roles out one after the other."""
        found = list(roles)
        return cls(
            [role.name for role in found],
            np.cumsum([0, *(len(role.codes) for role in found)], dtype=np.int64),
            np.concatenate([role.codes for role in found]),
            np.cumsum([0, *(len(role.stretches) for role in found)], dtype=np.int64),
            np.concatenate([role.stretches for role in found]),
        )

    def role(self, name: str) -> Role:
        """The role of this name."""
        index = self.names.index(name)
        text = slice(self.offsets[index], self.offsets[index + 1])
        parts = slice(self.stretch_offsets[index], self.stretch_offsets[index + 1])
        return Role(name, self.codes[text], self.stretches[parts])

    @property
    def sizes(self) -> dict[str, int]:
        """How many windows each role has."""
        windows = np.maximum(0, self.stretches - WINDOW)
        counts = np.add.reduceat(windows, self.stretch_offsets[:-1])
        return dict(zip(self.names, counts.tolist(), strict=True))

    def write(self, path: Path, source: str) -> None:
        """Write everything to one file."""
        arrays: Arrays = {
            "offsets": self.offsets,
            "codes": self.codes,
            "stretch_offsets": self.stretch_offsets,
            "stretches": self.stretches,
        }
        write_arrays(path, arrays, self.names, {"source": source})

    @classmethod
    def read(cls, path: Path, source: str | None = None) -> Self:
        """Read everything from one file, if it was made from this source."""
        if source is not None and read_about(path).get("source") != source:
            raise FileError(f"{str(path)!r} was made from other files")
        dtypes = {
            "offsets": "int64",
            "codes": "uint8",
            "stretch_offsets": "int64",
            "stretches": "int64",
        }
        arrays, names = read_arrays(path, dtypes)
        roles = cls(names, **arrays)
        fits = (
            _divides(roles.offsets, len(names), len(roles.codes))
            and _divides(roles.stretch_offsets, len(names), len(roles.stretches))
            and int(roles.codes.max(initial=0)) < CLASSES
            and np.array_equal(
                np.add.reduceat(roles.stretches, roles.stretch_offsets[:-1]), np.diff(roles.offsets)
            )
        )
        if not fits:
            raise FileError(f"{str(path)!r} is not Shakespeare's: remove it and make it again")
        return roles


def load_roles(folder: Path) -> Roles:
    """Read what lies in a folder: LEAF's json, a roles file, or what was fetched."""
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
    content = parse_json(file, _unpacked(file))
    if not isinstance(content, dict) or not content:
        raise FileError(f"{str(file)!r} must be an object of roles, {{role: {{…, text}}}}")
    return Roles.gather(_role(file, name, entry) for name, entry in content.items())


def read_leaf_roles(folder: Path) -> Roles:
    """Read LEAF's json folders: the windows of train/ and of test/, put together to text again.

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
    """Put windows (80 characters and the next) together: one stretch while each follows another."""
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


def shakespeare(
    roles: Roles,
    clients: int,
    seed: int = 0,
    *,
    min_examples: int = MIN_EXAMPLES,
    max_examples: int | Sequence[int] | None = MAX_EXAMPLES,
    name: str = "shakespeare",
) -> FederatedData:
    """Choose roles by a seed and give each to a client.

    `max_examples` caps the windows of a role, for all clients or for each. A pass over its training
    windows then visits so many, spread over the text and drawn anew each time: to keep always the
    same ones would save no more work, and teach a client its few windows by heart.
    """
    # With fewer windows, nothing would be left of the last tenth after the gap.
    minimum = max(min_examples, FEWEST_WINDOWS)
    chosen = choose("roles", roles.sizes, minimum, clients, seed)
    caps = max_examples if isinstance(max_examples, Sequence) else [max_examples] * clients
    train, test = {}, {}
    for client, source, cap in zip(client_names(clients), chosen, caps, strict=True):
        train[client], test[client] = _windows(roles.role(source), cap, seed)
    return FederatedData(name, CLASSES, train, test, dict(zip(train, chosen, strict=True)))


def _windows(role: Role, cap: int | None, seed: int) -> tuple[Examples, Examples]:
    """The training and the test windows of a role."""
    starts = _window_starts(role.stretches)
    cut = _cut(len(starts))
    train, test = starts[:cut], starts[cut + WINDOW :]
    if cap is None:
        return _examples(role.codes, train), _examples(role.codes, test)
    if cap < 2:
        raise SettingError(
            f"max_examples must be at least 2, one to train and one to test; given {cap}"
        )
    tests = held_out(cap)
    per_epoch = min(cap - tests, len(train))
    draw = randomness.generator(seed, "test-windows", role.name)
    return (
        replace(_examples(role.codes, train), per_epoch=per_epoch),
        _examples(role.codes, _spread(test, tests, draw)),
    )


def _window_starts(stretches: Places) -> Places:
    """Where windows begin: wherever 80 characters and one more follow in the same stretch."""
    ends = np.cumsum(stretches)
    ranges = [np.arange(end - n, end - WINDOW) for end, n in zip(ends, stretches, strict=True)]
    return np.concatenate(ranges)


def _cut(windows: int) -> int:
    return windows - round(TEST_SHARE * windows)


def _spread(places: Places, count: int, draw: np.random.Generator) -> Places:
    """One place drawn from each of `count` equal parts."""
    if len(places) <= count:
        return places
    chosen: Places = places[randomness.one_of_each_part(len(places), count, draw)]
    return chosen


def _examples(codes: Codes, starts: Places) -> Examples:
    """Windows as views into the text where they follow one another, and a copy where not."""
    every = sliding_window_view(codes, WINDOW, writeable=True)
    if starts[-1] - starts[0] == len(starts) - 1:
        rows = slice(int(starts[0]), int(starts[-1]) + 1)
        return Examples(every[rows], codes[starts + WINDOW].astype(np.int64))
    return Examples(every[starts], codes[starts + WINDOW].astype(np.int64))


def _divides(offsets: Places, parts: int, length: int) -> bool:
    """Whether offsets mark so many parts, none empty, of something of this length."""
    return (
        offsets.shape == (parts + 1,)
        and parts > 0
        and offsets[0] == 0
        and offsets[-1] == length
        and bool(np.all(np.diff(offsets) > 0))
    )


def _unpacked(file: Path) -> bytes:
    try:
        if file.suffix != ".gz":
            check_size(file, MAX_ROLES_BYTES)
            return file.read_bytes()
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
        raise FileError(f"{str(file)!r}, role {name!r}: must have a text")
    if not text.strip():
        raise FileError(f"{str(file)!r}, role {name!r}: its text is empty: remove the role")
    return Role(name, encode(text), np.array([len(text)], dtype=np.int64))


def _pairs(user: LeafUser) -> Iterator[tuple[str, str]]:
    for index, (text, following) in enumerate(zip(user.x, user.y, strict=True)):
        if not isinstance(text, str) or len(text) != WINDOW:
            raise user.fault(f"every x must be {WINDOW} characters; sample {index} is not")
        if not isinstance(following, str) or len(following) != 1:
            raise user.fault(f"every y must be one character; sample {index} is not")
        yield text, following
