"""Every file that somebody else may have written is read here: its size is checked first.

What a file holds is checked by its reader, which says in one line what is wrong and where.
"""

import json
from pathlib import Path
from typing import Any

from asyncfeded.core.errors import FileError

MOST_BYTES = 64 * 2**20
"""More than any file of JSON that we write."""
_AT_ONCE = 2**20


def read_bytes(path: Path, most_bytes: int) -> bytearray:
    """Read a file of at most so many bytes, also one that does not tell its size, such as a pipe.

    A larger one is a FileError; what the system cannot read, an OSError.
    """
    with path.open("rb", buffering=0) as file:
        size = path.stat().st_size
        content = bytearray()
        while size <= most_bytes and (more := file.read(_AT_ONCE)):
            content += more
            size = max(size, len(content))
    if size > most_bytes:
        raise FileError(f"{str(path)!r} must have at most {most_bytes:,} bytes; has {size:,}")
    return content


def read_text(path: Path, most_bytes: int) -> str:
    """Read a file of UTF-8, as above; other text is a UnicodeDecodeError, a ValueError."""
    return read_bytes(path, most_bytes).decode("utf-8")


def read_json(path: Path) -> Any:
    """Read a file of JSON that this package has written."""
    try:
        return parse_json(read_bytes(path, MOST_BYTES))
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise FileError(f"{str(path)!r} is damaged: {error}") from None


def parse_json(content: bytes | bytearray | str) -> Any:
    """Read JSON; whatever is wrong with it is a ValueError."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
