"""One column of a user's file, whatever is wrong with the rest of it."""

import struct
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data.columns import read_column


def test_an_array_of_an_npz_file_is_read_and_no_other(tmp_path: Path) -> None:
    others = np.array([{}, []], dtype=object)
    np.savez(tmp_path / "a.npz", y=np.array([3, 1, 2]), others=others)
    assert read_column(tmp_path / "a.npz", "y", "labels").tolist() == [3, 1, 2]
    with pytest.raises(FileError, match="the array 'others' is damaged, or not plain numbers"):
        read_column(tmp_path / "a.npz", "others", "labels")


def test_a_csv_column_of_whole_numbers_is_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeffy,site\n10,north\n\n2,south\n", encoding="utf-8")
    assert read_column(path, "y", "labels").tolist() == [10, 2]
    assert read_column(path, "site", "column").tolist() == ["north", "south"]


def test_a_row_of_another_length_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,site\n1,north\n2,south,west\n")
    with pytest.raises(FileError, match="line 3: must have 2 columns, as the header has; has 3"):
        read_column(path, "y", "labels")


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("species,site\n")
    with pytest.raises(SettingError, match="labels must be one of 'species', 'site', the columns"):
        read_column(path, "y", "labels")


def test_more_than_one_value_per_example_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", y=np.zeros((3, 2)))
    with pytest.raises(FileError, match=r"labels 'y' must have one value per example; has the sh"):
        read_column(tmp_path / "a.npz", "y", "labels")


def test_a_header_that_promises_more_than_the_file_has_takes_no_memory(tmp_path: Path) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 80
    with ZipFile(tmp_path / "a.npz", "w", ZIP_DEFLATED) as archive:
        archive.writestr("y.npy", content)
    with pytest.raises(FileError, match="the array 'y' is damaged"):
        read_column(tmp_path / "a.npz", "y", "labels")


@pytest.mark.parametrize("content", [b"", b"PK no zip", b"\x93NUMPY\x01\x00"])
def test_what_is_no_npz_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(FileError, match=r"a.npz' cannot be read"):
        read_column(tmp_path / "a.npz", "y", "labels")


def test_a_csv_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"y\n\xff\xfe\n")
    with pytest.raises(FileError, match=r"a.csv' cannot be read"):
        read_column(tmp_path / "a.csv", "y", "labels")
