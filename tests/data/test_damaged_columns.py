"""An .npz file that cannot be read is named in one line, whatever is wrong with it."""

import struct
import tracemalloc
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.data.columns import read_column


def npy(header: str, version: int = 1, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes((version, 0)) + struct.pack("<H", len(text)) + text + content


def stored(path: Path, name: str, content: bytes) -> Path:
    with ZipFile(path, "w", ZIP_STORED) as archive:
        archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("y.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (0,)}", version=9)),
        ("y.npy", npy("(" * 5000)),
        ("y.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}")),
        ("y.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", content=b"cos\n")),
        ("y", b"an array without its suffix"),
    ],
)
def test_a_damaged_array_is_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = stored(tmp_path / "a.npz", name, content)
    with pytest.raises(FileError, match=r"a\.npz'(: the array 'y' is damaged| cannot be read: )"):
        read_column(path, "y", "labels")


def test_a_truncated_file_and_a_folder_are_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", y=np.arange(1000))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.npz").mkdir()
    for name in ("a.npz", "b.npz"):
        with pytest.raises(FileError, match=f"{name}' cannot be read: "):
            read_column(tmp_path / name, "y", "labels")


def test_an_encrypted_array_is_one_line(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.npz", "y.npy", npy("{}"))
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the flag of encryption, in the local header and in the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"a.npz' cannot be read: .*encrypted"):
        read_column(path, "y", "labels")


def test_an_array_that_is_too_large_to_read_is_refused_by_its_size(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.npz", "y.npy", npy("{}"))
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"array 'y' must have at most 2,147,483,648 bytes; has"):
        read_column(path, "y", "labels")


def test_an_array_that_claims_more_than_it_holds_takes_no_memory(tmp_path: Path) -> None:
    header = npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({2**27},)}}")
    path = stored(tmp_path / "a.npz", "y.npy", header)
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<I", 2**31 - 1)
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(FileError, match=r"a\.npz'(: the array 'y' is damaged| cannot be read: )"):
        read_column(path, "y", "labels")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21


def test_a_whole_number_that_no_array_holds_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"y\n1\n{2**70}\n")
    assert read_column(tmp_path / "a.csv", "y", "labels").tolist() == ["1", str(2**70)]


def test_one_long_text_does_not_make_all_others_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncfeded.data.columns.MOST_BYTES", 1000)
    (tmp_path / "a.csv").write_text("y\n" + "a" * 99 + "\nb\nc\n")
    with pytest.raises(FileError, match=r"would take 1,188 bytes, each as much as the longest"):
        read_column(tmp_path / "a.csv", "y", "labels")
