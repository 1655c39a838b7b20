"""The store of finished runs: found by settings, whole or not there."""

from pathlib import Path

import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.store.runs import MOST_BYTES, RunStore, run_key


def test_the_key_depends_on_every_setting_and_not_on_their_order() -> None:
    key = run_key({"task": "a", "seed": 1, "inner": {"x": 1.0, "y": None}})
    assert key == run_key({"inner": {"y": None, "x": 1.0}, "seed": 1, "task": "a"})
    assert key != run_key({"task": "a", "seed": 2, "inner": {"x": 1.0, "y": None}})
    assert key != run_key({"task": "a", "seed": 1, "inner": {"x": 1.5, "y": None}})


def test_a_run_is_found_again_in_another_process_s_store(tmp_path: Path) -> None:
    key = run_key({"seed": 1})
    assert key not in RunStore(tmp_path / "store")
    record = {"key": key, "accuracy": [0.1, 1 / 3], "text": "γ̄"}
    RunStore(tmp_path / "store").put(record)
    again = RunStore(tmp_path / "store")
    assert key in again
    assert again.get(key) == record
    assert list(again) == [key]
    assert [path.name for path in again.folder.iterdir()] == [f"{key}.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"key":"other"}', b"\xff\xfe"])
def test_a_damaged_run_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    store = RunStore(tmp_path)
    (tmp_path / "0123456789abcdef.json").write_bytes(content)
    with pytest.raises(FileError, match=r"0123456789abcdef.json' is damaged: remove the file"):
        store.get("0123456789abcdef")


def test_a_file_of_any_size_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(FileError, match="at most"):
        RunStore(tmp_path).get("big")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"store '.*file/store' cannot be made"):
        RunStore(tmp_path / "file" / "store")
