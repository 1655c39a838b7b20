"""FEMNIST: handwritten digits and letters, one client per writer.

Sebastian Caldas et al., arXiv:1812.01097: 62 classes (0 to 9, A to Z, a to z), 28 × 28 pixels,
paper white (255) and ink black (0).
"""

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data.arrays import read_arrays, write_arrays
from asyncfeded.data.cache import cached
from asyncfeded.data.federated import (
    Examples,
    FederatedData,
    choose,
    held_out,
    nearest,
    random_sides,
    tenths,
)
from asyncfeded.data.leaf import LeafUser, leaf_files, read_leaf
from asyncfeded.on_demand import ClientNames
from asyncfeded.randomness import Places

SIDE = 28
GLYPHS = string.digits + string.ascii_uppercase + string.ascii_lowercase
"""The classes, in FEMNIST's order."""
CLASSES = len(GLYPHS)
MIN_EXAMPLES = 100
PAPER_SIZES = (150, 358, 125, 187, 180, 201, 150, 302, 168, 189)
"""Images of the ten clients in the paper's evaluation: 2,010, of which 201 are for testing.

The training parts are estimates from the round times in the authors' published results.
"""
FETCHED = "femnist.safetensors"
DTYPES = {"offsets": "int64", "pixels": "uint8", "labels": "uint8", "in_test": "bool"}

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Writer:
    """All images of one writer, each once; `in_test` says on which side of the split they are."""

    name: str
    pixels: Pixels
    labels: Labels
    in_test: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Writers:
    """Writers in compact arrays: the images of writer i lie from offsets[i] to offsets[i + 1]."""

    names: list[str]
    offsets: npt.NDArray[np.int64]
    pixels: Pixels
    labels: npt.NDArray[np.uint8]
    in_test: npt.NDArray[np.bool_]

    @classmethod
    def gather(cls, writers: Iterable[Writer]) -> Self:
        """Lay writers out one after the other."""
        found = list(writers)
        return cls(
            [writer.name for writer in found],
            np.cumsum([0, *(len(writer.labels) for writer in found)], dtype=np.int64),
            np.concatenate([writer.pixels for writer in found]),
            np.concatenate([writer.labels for writer in found]).astype(np.uint8),
            np.concatenate([writer.in_test for writer in found]),
        )

    def writer(self, name: str) -> Writer:
        """The writer of this name."""
        index = self.names.index(name)
        part = slice(self.offsets[index], self.offsets[index + 1])
        labels = self.labels[part].astype(np.int64)
        return Writer(name, self.pixels[part], labels, self.in_test[part])

    @property
    def sizes(self) -> dict[str, int]:
        """The number of images of each writer."""
        return dict(zip(self.names, np.diff(self.offsets).tolist(), strict=True))

    @property
    def with_both_sides(self) -> set[str]:
        """The writers who have images on both sides of the split."""
        tests = np.add.reduceat(self.in_test, self.offsets[:-1], dtype=np.int64)
        both = (tests > 0) & (tests < np.diff(self.offsets))
        return {name for name, usable in zip(self.names, both, strict=True) if usable}

    def write(self, path: Path, source: str) -> None:
        """Write everything to one file."""
        arrays = {key: getattr(self, key) for key in DTYPES}
        write_arrays(path, arrays, self.names, source)

    @classmethod
    def read(cls, path: Path, source: str | None = None) -> Self:
        """Read everything from one file, if it was made from this source."""
        arrays, names = read_arrays(path, DTYPES, source)
        writers = cls(names, **arrays)
        count = writers.labels.size
        fits = (
            writers.pixels.shape == (count, SIDE, SIDE)
            and writers.in_test.shape == writers.labels.shape == (count,)
            and writers.offsets.shape == (len(names) + 1,)
            and writers.offsets[0] == 0
            and writers.offsets[-1] == count
            and bool(np.all(np.diff(writers.offsets) > 0))
            and int(writers.labels.max(initial=0)) < CLASSES
        )
        if not fits:
            raise FileError(f"{str(path)!r} is not FEMNIST's: remove it and make it again")
        return writers


def load_writers(folder: Path) -> Writers:
    """Read a folder with LEAF's json, or with the file that `asyncfeded data fetch` wrote."""
    if (folder / FETCHED).is_file():
        return Writers.read(folder / FETCHED)
    files = [file for side in leaf_files(folder).values() for file in side]
    return cached(Writers, folder, files, lambda: read_leaf_writers(folder))


def read_leaf_writers(folder: Path) -> Writers:
    """Read LEAF's json folders, with LEAF's own split."""
    sides: dict[str, list[tuple[str, Pixels, Labels]]] = {}
    for user in read_leaf(folder):
        pixels, labels = _images(user)
        sides.setdefault(user.name, []).append((user.side, pixels, labels))
    if not sides:
        raise FileError(f"{str(folder)!r} has no users in any of its shards")
    return Writers.gather(_from_sides(name, parts) for name, parts in sides.items())


def femnist(
    writers: Writers,
    clients: int,
    seed: int = 0,
    *,
    min_examples: int = MIN_EXAMPLES,
    max_examples: int | None = None,
    sizes: Sequence[int] | None = None,
    name: str = "femnist",
) -> FederatedData:
    """Choose writers by a seed and give each to a client; the test images are LEAF's.

    With `sizes`, one per client, each client gets a writer with about that many images instead. A
    writer with more is cut to the size, and a random tenth of the images is for testing.
    """
    usable = writers.with_both_sides
    if not usable:
        raise SettingError(
            "clients must have images to train and to test, and no writer has both: "
            "make the data with LEAF's -t sample"
        )
    found = {source: size for source, size in writers.sizes.items() if source in usable}
    if sizes is None:
        chosen = choose("writers", found, min_examples, clients, seed)
        sides = [_own_sides(writers.writer(source), max_examples, seed) for source in chosen]
    else:
        wanted = [min(size, max_examples or size) for size in sizes]
        chosen = nearest("writers", found, min_examples, wanted, seed)
        sides = _sides_of_sizes({source: found[source] for source in chosen}, wanted, seed)
    train, test = {}, {}
    for client, source, (trains, tests) in zip(ClientNames(clients), chosen, sides, strict=True):
        writer = writers.writer(source)
        examples = Examples(writer.pixels, writer.labels)
        train[client], test[client] = examples.take(trains), examples.take(tests)
    sources = dict(zip(train, chosen, strict=True))
    return FederatedData(name, CLASSES, train, test, sources, class_names=GLYPHS)


def _own_sides(writer: Writer, most: int | None, seed: int) -> tuple[Places, Places]:
    """The places of a writer's images by its own split, with a cap on both sides together."""
    trains, tests = np.flatnonzero(~writer.in_test), np.flatnonzero(writer.in_test)
    if most is None or len(writer.labels) <= most:
        return trains, tests
    count = held_out(most)
    draw = randomness.generator(seed, "cap", writer.name)
    return (
        np.sort(draw.permutation(trains)[: max(1, most - count)]),
        np.sort(draw.permutation(tests)[:count]),
    )


def _sides_of_sizes(
    found: Mapping[str, int], wanted: Sequence[int], seed: int
) -> list[tuple[Places, Places]]:
    """The places of each writer's images, at most the wanted number, a tenth of them to test."""
    counts = [min(size, most) for size, most in zip(found.values(), wanted, strict=True)]
    sides = []
    for source, count, tests in zip(found, counts, tenths(counts), strict=True):
        draw = randomness.generator(seed, "cap", source)
        kept = np.sort(draw.permutation(found[source])[:count])
        draw = randomness.generator(seed, "test-split", source)
        trains, held = random_sides(count, tests, draw)
        sides.append((kept[trains], kept[held]))
    return sides


def split_writer(name: str, pixels: Pixels, labels: Labels) -> Writer:
    """Hold out a tenth of a writer's images, the same ones each time; each image counts once."""
    kept = _first_of_each(pixels)
    order = randomness.generator(0, "test-split", name).permutation(len(kept))
    in_test = np.zeros(len(kept), dtype=bool)
    in_test[order[: held_out(len(kept))]] = True
    return Writer(name, pixels[kept], labels[kept], in_test)


def _from_sides(name: str, parts: list[tuple[str, Pixels, Labels]]) -> Writer:
    """A writer from both sides of LEAF's split; an image that is on both stays in train."""
    pixels = np.concatenate([part[1] for part in parts])
    labels = np.concatenate([part[2] for part in parts])
    in_test = np.concatenate([np.full(len(part[2]), part[0] == "test") for part in parts])
    kept = _first_of_each(pixels)
    return Writer(name, pixels[kept], labels[kept], in_test[kept])


def _first_of_each(pixels: Pixels) -> npt.NDArray[np.int64]:
    _, first = np.unique(pixels.reshape(len(pixels), -1), axis=0, return_index=True)
    return np.sort(first)


def _images(user: LeafUser) -> tuple[Pixels, Labels]:
    try:
        x = np.asarray(user.x, dtype=np.float64)
        y = np.asarray(user.y)
    except (TypeError, ValueError, OverflowError):
        raise user.fault("x must be lists of numbers, and y numbers") from None
    if x.shape != (len(user.x), SIDE * SIDE):
        raise user.fault(f"every x must be {SIDE * SIDE} pixels; has the shape {x.shape}")
    wrong = np.flatnonzero(~((x >= 0) & (x <= 1)).all(axis=1))
    if len(wrong):
        raise user.fault(f"pixels must be from 0 to 1; sample {wrong[0]} has others")
    if y.dtype.kind not in "iu" or y.shape != (len(user.y),):
        raise user.fault("y must be whole numbers")
    wrong = np.flatnonzero((y < 0) | (y >= CLASSES))
    if len(wrong):
        raise user.fault(
            f"labels must be from 0 to {CLASSES - 1}; sample {wrong[0]} has {y[wrong[0]]}"
        )
    pixels = np.round(x * 255).astype(np.uint8).reshape(-1, SIDE, SIDE)
    return pixels, y.astype(np.int64)
