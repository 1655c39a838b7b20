"""What is fuzzed, and what must hold of it for any bytes."""

import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple

from asyncfeded.core.errors import AsyncFedEDError

LEAST_MEMORY = 4 * 2**20
MEMORY_PER_BYTE = 200
"""A parsed number of two bytes takes some 30, and is there a few times at once."""
LONGEST_ERROR = 1000

Read = Callable[[bytes], object]
Mutate = Callable[[bytes, Random], bytes]


class Target(NamedTuple):
    """A reader. `read` raises an AssertionError if what it has read does not hold.

    `seeds` are sound inputs to begin with. `mutated` changes what an
    input holds, where changes of its bytes would hardly reach the reader.
    """

    read: Read
    seeds: Callable[[], Iterable[bytes]]
    mutated: Mutate | None = None


def accepts(target: Target, content: bytes) -> bool:
    """Whether a target takes these bytes; False if it refuses them as it should."""
    try:
        target.read(content)
    except AsyncFedEDError as error:
        text = str(error)
        assert text, "an error says what is wrong"
        short_line = "\n" not in text and len(text) < LONGEST_ERROR
        assert short_line, f"an error is a short line: {text!r:.2000}"
        return False
    return True


def check_memory(target: Target, content: bytes) -> None:
    """Refuse a reader that takes much more memory than it is given bytes."""
    accepts(target, content)  # what is loaded and compiled at first is not this reader's
    tracemalloc.start()
    try:
        accepts(target, content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    most = LEAST_MEMORY + MEMORY_PER_BYTE * len(content)
    assert peak <= most, f"{len(content)} bytes took {peak:,} bytes of memory; at most {most:,}"


def counter_of(corpus: Path) -> Path:
    """The file that counts which inputs were refused, beside the folder of those that are kept."""
    return corpus.with_name(f"{corpus.name}.refused")


_folder = tempfile.TemporaryDirectory(prefix="asyncfeded-fuzz-")


def in_file(content: bytes, name: str) -> Path:
    """A file with this content, in a folder of this process."""
    path = Path(_folder.name) / name
    path.write_bytes(content)
    return path
