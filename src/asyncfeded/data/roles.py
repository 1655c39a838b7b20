"""The texts of roles in compact form: one byte per character."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import FileError
from asyncfeded.data.arrays import read_arrays, write_arrays
from asyncfeded.randomness import Places

WINDOW = 80
"""The number of characters of a window; an example is a window and the next character."""
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""LEAF's characters, in LEAF's order."""
OTHER = len(LETTERS)
CLASSES = len(LETTERS) + 1
"""The class of every other character."""
SHOWN = [{"\n": "⏎", " ": "␣"}.get(letter, letter) for letter in LETTERS] + ["�"]
"""How a reader sees the classes."""
DTYPES = {"offsets": "int64", "codes": "uint8", "stretch_offsets": "int64", "stretches": "int64"}

Codes = npt.NDArray[np.uint8]

_CODE_OF = {letter: code for code, letter in enumerate(LETTERS)}


def encode(text: str) -> Codes:
    """The classes of a text's characters."""
    return np.fromiter((_CODE_OF.get(letter, OTHER) for letter in text), np.uint8, len(text))


@dataclass(frozen=True, slots=True)
class Role:
    """A role's text, and the lengths of its stretches of unbroken text, which add up to all."""

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
        """The number of windows of each role."""
        windows = np.maximum(0, self.stretches - WINDOW)
        counts = np.add.reduceat(windows, self.stretch_offsets[:-1])
        return dict(zip(self.names, counts.tolist(), strict=True))

    def write(self, path: Path, source: str) -> None:
        """Write everything to one file."""
        arrays = {key: getattr(self, key) for key in DTYPES}
        write_arrays(path, arrays, self.names, source)

    @classmethod
    def read(cls, path: Path, source: str | None = None) -> Self:
        """Read everything from one file, if it was made from this source."""
        arrays, names = read_arrays(path, DTYPES, source)
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


def _divides(offsets: Places, parts: int, length: int) -> bool:
    """Whether offsets divide this length into this many parts, none of them empty."""
    return (
        offsets.shape == (parts + 1,)
        and parts > 0
        and offsets[0] == 0
        and offsets[-1] == length
        and bool(np.all(np.diff(offsets) > 0))
    )
