"""A folder of the operating system."""

import errno
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.store.disk import RealDisk


def test_a_file_is_created_written_read_renamed_and_deleted(tmp_path: Path) -> None:
    with RealDisk(tmp_path / "a" / "b") as disk:
        disk.create("x")
        disk.append("x", [b"0123", b"", memoryview(b"456")])
        disk.append("x", [b"7"])
        disk.rewrite("x", 1, b"AB")
        disk.sync("x")
        disk.rename("x", "y")
        disk.sync_folder()
        assert (disk.names(), disk.size("y")) == (["y"], 8)
        assert bytes(disk.read("y", 0, 100)) == b"0AB34567"
        assert bytes(disk.read("y", 2, 3)) == b"B34"
        disk.cut("y", 3)
        disk.append("y", [b"."])
        assert (tmp_path / "a" / "b" / "y").read_bytes() == b"0AB."
        with pytest.raises(FileExistsError):
            disk.create("y")
        disk.delete("y")
        assert disk.names() == []


def test_more_pieces_are_written_than_one_call_takes(tmp_path: Path) -> None:
    pieces = [bytes([i % 256]) * (i % 7) for i in range(3000)]
    with RealDisk(tmp_path) as disk:
        disk.create("x")
        disk.append("x", pieces)
    assert (tmp_path / "x").read_bytes() == b"".join(pieces)


def test_a_folder_belongs_to_one_disk_at_a_time(tmp_path: Path) -> None:
    with (
        RealDisk(tmp_path),
        pytest.raises(FileError, match="in use by another process: wait for its end, or choose"),
    ):
        RealDisk(tmp_path)
    RealDisk(tmp_path).close()


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="file/x' cannot be used: "):
        RealDisk(tmp_path / "file" / "x")
    with pytest.raises(FileError, match="cannot be used: embedded null"):
        RealDisk("a\0b")


def odd_pieces(size: int) -> list[bytes]:
    content = np.random.default_rng(0).bytes(size)
    places = [0, 64, 1000, 3 * 2**20 + 7, size - 448, size]
    return [content[start:end] for start, end in pairwise(places)]


def test_a_large_write_goes_past_the_cache_and_is_there_with_every_byte(tmp_path: Path) -> None:
    pieces = odd_pieces(11 * 2**20 + 512)
    with RealDisk(tmp_path) as disk:
        disk.create("x")
        disk.append("x", [bytes(512)])
        disk.append("x", pieces)
        disk.append("x", pieces)
        disk.append("x", [b"small"])
    assert (tmp_path / "x").read_bytes() == bytes(512) + 2 * b"".join(pieces) + b"small"


@pytest.mark.parametrize("refused", ["open", "pwrite"])
def test_a_file_system_without_writes_past_its_cache_is_written_to_in_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    calls = 0

    def refuse(*_: object) -> int:
        nonlocal calls
        calls += 1
        raise OSError(errno.EINVAL, "Invalid argument")

    pieces = odd_pieces(2**22)
    with RealDisk(tmp_path) as disk:
        disk.create("x")
        with monkeypatch.context() as patched:
            patched.setattr(f"asyncfeded.store.direct.os.{refused}", refuse)
            disk._direct.write(tmp_path / "x", [memoryview(piece) for piece in pieces], 0)
        disk.append("x", pieces)
        disk.append("x", pieces)
    assert calls == 1
    assert (tmp_path / "x").read_bytes() == 2 * b"".join(pieces)


def test_a_large_write_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with RealDisk(tmp_path) as disk:
        disk.create("x")
        monkeypatch.setattr("asyncfeded.store.direct.os.pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            disk.append("x", odd_pieces(2**21 + 2**20 * 2))
