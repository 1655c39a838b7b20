"""Every file is whole or not there, and what cannot be written is named."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.files import whole_file, write_bytes, write_json, write_table, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_place_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "before")
    with whole_file(path) as unfinished:
        unfinished.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert names(tmp_path) == ["a.txt"]


def test_an_error_leaves_the_earlier_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "before")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as unfinished:  # noqa: PT012
        unfinished.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_has_the_permissions_of_any_other_file(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_text(tmp_path / "ours", "")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "ours")}
    assert len(modes) == 1


def test_what_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere/a.txt' cannot be written: No such file"):
        write_text(tmp_path / "nowhere" / "a.txt", "")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=r"folder' cannot be written: Is a directory"):
        write_bytes(tmp_path / "folder", b"")
    assert names(tmp_path) == ["folder"]


def test_text_is_utf_8_even_if_a_path_in_it_could_not_be_decoded(tmp_path: Path) -> None:
    in_an_ascii_locale = os.fsencode("é").decode("ascii", "surrogateescape")
    write_text(tmp_path / "a", f"γ̄ {in_an_ascii_locale}")
    assert (tmp_path / "a").read_bytes() == "γ̄ é".encode()
    no_utf_8 = os.fsdecode(b"\xff")
    write_json(tmp_path / "b", {"out": no_utf_8, "π": "γ"}, indent=None)
    assert (tmp_path / "b").read_bytes() == '{"out":"\\udcff","π":"γ"}\n'.encode()
    assert json.loads((tmp_path / "b").read_bytes())["out"] == no_utf_8


def test_numbers_of_numpy_become_plain_and_those_json_lacks_become_null(tmp_path: Path) -> None:
    value = {"a": np.float32(0.5), "b": np.int64(3), "c": float("nan"), "d": [np.bool_(True)]}
    write_json(tmp_path / "a.json", value)
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 0.5, "b": 3, "c": None, "d": [1]}


def test_what_json_cannot_hold_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=r"a.json' cannot be written as JSON: Object of type object"
    ):
        write_json(tmp_path / "a.json", {"a": object()})
    assert names(tmp_path) == []


def test_a_table_has_headings_and_quotes_what_needs_it(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ["name", "value"], [("a, b", 1.5), ("c", None)])
    assert (tmp_path / "a.csv").read_bytes() == b'name,value\r\n"a, b",1.5\r\nc,\r\n'
