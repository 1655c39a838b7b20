"""What is wrong with a folder is said in one line that names the file and the user."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.data.femnist import load_writers
from asyncfeded.data.leaf import read_leaf
from leaf_folders import image, shard, write_femnist, write_side

Shard = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sizes = {"f0001": (3, 1), "f0002": (3, 1), "f0003": (2, 1), "f0004": (2, 1), "f0005": (2, 1)}
    return write_femnist(tmp_path / "femnist", sizes)


def spoil(folder: Path, number: int, change: Callable[[Shard], object]) -> Path:
    """Change a shard of the training side in place."""
    path = folder / "train" / f"all_data_{number}_niid_05_keep_0_train_9.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def test_users_are_read_shard_by_shard_with_both_sides(folder: Path) -> None:
    found = [(user.side, user.name, len(user.y)) for user in read_leaf(folder)]
    assert found[:3] == [("train", "f0001", 3), ("train", "f0002", 3), ("train", "f0003", 2)]
    assert found[5:] == [("test", f"f000{i}", 1) for i in range(1, 6)]


def error_of(folder: Path) -> str:
    with pytest.raises(FileError) as raised:
        load_writers(folder)
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["num_samples"].__setitem__(1, 9), "'f0002': num_samples says 9, but x has 3"),
        (lambda s: s["user_data"].pop("f0002"), "'f0002': user_data must have lists x and y"),
        (lambda s: s.pop("users"), "is not a shard of LEAF's: it must be an object with users"),
        (lambda s: s["num_samples"].pop(), "num_samples (one per user)"),
        (
            lambda s: s["user_data"]["f0001"]["y"].__setitem__(1, 62),
            "'f0001': labels must be from 0 to 61; sample 1 has 62",
        ),
        (
            lambda s: s["user_data"]["f0001"]["y"].__setitem__(1, "b"),
            "'f0001': y must be whole numbers",
        ),
        (
            lambda s: s["user_data"]["f0001"]["x"][2].__setitem__(7, 1.5),
            "'f0001': pixels must be from 0 to 1; sample 2 has others",
        ),
        (
            lambda s: s["user_data"]["f0001"]["x"][2].pop(),
            "'f0001': x must be lists of numbers, and y numbers",
        ),
        (
            lambda s: [x.pop() for x in s["user_data"]["f0001"]["x"]],
            "'f0001': every x must be 784 pixels; has the shape (3, 783)",
        ),
    ],
)
def test_a_spoilt_shard_is_named_with_its_user(
    folder: Path, change: Callable[[Shard], object], message: str
) -> None:
    path = spoil(folder, 0, change)
    found = error_of(folder)
    assert message in found
    assert str(path) in found


def test_a_user_without_samples_is_refused(folder: Path) -> None:
    def empty(content: Shard) -> None:
        content["num_samples"][0] = 0
        content["user_data"]["f0001"] = {"x": [], "y": []}

    spoil(folder, 0, empty)
    assert "user 'f0001': has no samples" in error_of(folder)


def test_a_user_in_two_shards_is_refused(folder: Path) -> None:
    path = folder / "train" / "all_data_1_niid_05_keep_0_train_9.json"
    path.write_text(json.dumps(shard({"f0001": {"x": [image(9)], "y": [0]}})))
    assert "user 'f0001': is also in all_data_0_niid_05_keep_0_train_9.json" in error_of(folder)


def test_shards_without_users_are_refused(tmp_path: Path) -> None:
    for side in ("train", "test"):
        write_side(tmp_path, side, 0, {})
    assert "has no users in any of its shards" in error_of(tmp_path)


@pytest.mark.parametrize(
    ("number", "message"),
    [("1" + "0" * 400, "x must be lists of numbers"), ("1" * 5000, "is not json: Exceeds")],
)
def test_numbers_beyond_all_bounds_are_refused(folder: Path, number: str, message: str) -> None:
    path = folder / "train" / "all_data_0_niid_05_keep_0_train_9.json"
    path.write_text(path.read_text().replace("[[", f"[[{number},", 1))
    assert message in error_of(folder)


@pytest.mark.parametrize("name", ["", "R\ud800"])
def test_a_name_that_cannot_be_written_again_is_refused(tmp_path: Path, name: str) -> None:
    for side in ("train", "test"):
        write_side(tmp_path, side, 0, {name: {"x": [image(1)], "y": [1]}})
    assert "a name must be a text of valid characters" in error_of(tmp_path)


def test_a_shard_too_large_to_be_read_at_once_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncfeded.data.leaf.MAX_SHARD_BYTES", 1000)
    assert "must have at most 1,000 bytes; has " in error_of(folder)


def test_json_that_breaks_off_is_refused(folder: Path) -> None:
    path = folder / "test" / "all_data_1_niid_05_keep_0_test_9.json"
    path.write_text(path.read_text()[:500])
    assert re.search(r"all_data_1_niid_05_keep_0_test_9.json' is not json: .*", error_of(folder))


def test_a_missing_shard_is_named_from_its_other_side(folder: Path) -> None:
    (folder / "test" / "all_data_1_niid_05_keep_0_test_9.json").unlink()
    assert "test/all_data_1_niid_05_keep_0_test_9.json' is missing" in error_of(folder)


def test_a_shard_missing_on_both_sides_leaves_a_gap_in_the_numbers(folder: Path) -> None:
    for side in ("train", "test"):
        (folder / side / f"all_data_1_niid_05_keep_0_{side}_9.json").unlink()
    message = error_of(folder)
    assert "train/all_data_1_niid_05_keep_0_train_9.json' is missing" in message
    assert "there are shards up to 2" in message


def test_a_folder_that_is_not_leafs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    assert "is not a folder of LEAF's: it must have train/" in error_of(tmp_path)


def test_a_shard_that_cannot_be_read_is_named(folder: Path) -> None:
    path = folder / "train" / "all_data_1_niid_05_keep_0_train_9.json"
    path.unlink()
    path.mkdir()
    assert "train_9.json' cannot be read: Is a directory" in error_of(folder)
