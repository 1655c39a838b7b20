"""A folder of the operating system."""

from pathlib import Path

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
