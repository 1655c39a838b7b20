"""The files of a result: each is whole, or it is not there."""

import json
import os
from pathlib import Path

import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.result import Result


def test_a_folder_whose_name_is_no_utf_8_has_a_whole_summary(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff")
    Result({"out": name}).write(tmp_path, "")
    assert json.loads((tmp_path / "summary.json").read_bytes())["settings"]["out"] == name


def test_a_summary_that_cannot_be_encoded_is_named_and_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"summary.json' cannot be written as JSON: Object of type"):
        Result({"seed": object()}).write(tmp_path, "")
    assert not (tmp_path / "summary.json").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_plot_of_an_unknown_kind_is_refused_with_the_known_kinds(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a.txt' must end in .*\.png.*; given '.txt'"):
        Result({}).plot(tmp_path / "a.txt")
    Result({}).plot(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
