"""A file is read up to its limit and no further, also one that does not tell its size."""

from pathlib import Path

import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.reading import parse_json, read_bytes, read_text


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(FileError, match=r"a' must have at most 4 bytes; has 5"):
        read_bytes(path, 4)


def test_a_file_without_an_end_is_not_read_for_ever() -> None:
    with pytest.raises(FileError, match=r"zero' must have at most 3,000,000 bytes; has 3,145,728"):
        read_bytes(Path("/dev/zero"), 3_000_000)


def test_text_that_is_not_utf_8_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="'utf-8' codec"):
        read_text(tmp_path / "a", 10)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe\x00", b"1" * 5000, b""])
def test_json_that_cannot_be_read_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(content)
