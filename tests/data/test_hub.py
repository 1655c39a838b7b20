"""Fetching, through the hub's own library, from a small repository with the hub's schema."""

import csv
from pathlib import Path

import datasets
import numpy as np
import pytest
from PIL import Image

from asyncfeded.core.errors import FileError
from asyncfeded.data.femnist import femnist, load_writers
from asyncfeded.data.hub import fetch
from asyncfeded.data.role_files import load_roles
from asyncfeded.data.shakespeare import shakespeare
from leaf_folders import decode, speech, windows


@pytest.fixture(autouse=True)
def _hub_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub-cache")
    datasets.disable_progress_bars()


def picture(*key: int) -> Image.Image:
    pixels = np.random.default_rng(key).integers(0, 256, (28, 28), dtype=np.uint8)
    return Image.fromarray(pixels)


def femnist_repository(folder: Path, **changes: object) -> str:
    """12 images of each of 3 writers, one of them twice; the hub's columns and types."""
    rows = [(writer, i % 62, picture(writer, i)) for writer in range(3) for i in range(12)]
    rows.append((0, 3, picture(0, 3)))
    columns: dict[str, list[object]] = {
        "image": [image for _, _, image in rows],
        "writer_id": [f"f000{writer}_14" for writer, _, _ in rows],
        "hsf_id": [0] * len(rows),
        "character": [label for _, label, _ in rows],
    }
    names = list("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    kinds = {
        "image": datasets.Image(),
        "writer_id": datasets.Value("string"),
        "hsf_id": datasets.Value("int64"),
        "character": datasets.ClassLabel(names=names),
    }
    for name in changes.get("without", ()):  # type: ignore[attr-defined]
        del columns[name], kinds[name]
    folder.mkdir()
    table = datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))
    table.to_parquet(folder / "train-00000-of-00001.parquet")
    return str(folder)


def shakespeare_repository(folder: Path, rows: list[tuple[str, str, str]]) -> str:
    folder.mkdir()
    with (folder / "shakespeare.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["character_id", "x", "y"])
        writer.writerows(rows)
    return str(folder)


def test_femnist_is_fetched_split_and_kept(tmp_path: Path) -> None:
    source = femnist_repository(tmp_path / "repository")
    steps: list[tuple[int, int]] = []
    path = fetch("femnist", tmp_path / "femnist", lambda *step: steps.append(step), source)
    assert path == tmp_path / "femnist" / "femnist.safetensors"
    assert steps == [(0, 37), (37, 37)]
    writers = load_writers(path.parent)
    # The image that writer 0 has twice counts once; of 12 images, one is held out.
    assert writers.sizes == {"f0000_14": 12, "f0001_14": 12, "f0002_14": 12}
    writer = writers.writer("f0001_14")
    assert np.array_equal(writer.pixels[5], np.asarray(picture(1, 5)))
    assert writer.labels.tolist() == list(range(12))
    assert writer.in_test.sum() == 1
    data = femnist(writers, clients=3, min_examples=10)
    assert sum(len(examples) for examples in data.train.values()) == 33


def test_shakespeare_is_fetched_and_put_together(tmp_path: Path) -> None:
    texts = {name: speech(name, 1500) for name in ("PLAY_A", "PLAY_B")}
    rows = [(name, x, y) for name, text in texts.items() for x, y in windows(text)]
    source = shakespeare_repository(tmp_path / "repository", rows)
    path = fetch("shakespeare", tmp_path / "shakespeare", lambda *_: None, source)
    roles = load_roles(path.parent)
    assert {name: decode(roles.role(name).codes) for name in roles.names} == texts
    assert len(shakespeare(roles, clients=2, min_examples=1).train) == 2


def test_a_repository_without_the_columns_is_refused(tmp_path: Path) -> None:
    source = femnist_repository(tmp_path / "repository", without=("writer_id",))
    with pytest.raises(FileError, match="must have the columns image, writer_id, character; it l"):
        fetch("femnist", tmp_path / "femnist", lambda *_: None, source)
    assert not (tmp_path / "femnist").exists()


def test_a_window_of_another_length_is_named_with_its_row_and_role(tmp_path: Path) -> None:
    rows = [("A", "x" * 80, "y"), ("A", "x" * 79, "y")]
    source = shakespeare_repository(tmp_path / "repository", rows)
    with pytest.raises(FileError, match="row 1, role 'A': x must be 80 characters and y one"):
        fetch("shakespeare", tmp_path / "shakespeare", lambda *_: None, source)
    assert not (tmp_path / "shakespeare").exists()


def test_windows_out_of_order_are_refused(tmp_path: Path) -> None:
    rows = [("A", x, y) for x, y in reversed(windows(speech("A", 200)))]
    source = shakespeare_repository(tmp_path / "repository", rows)
    with pytest.raises(FileError, match="role 'A': its windows do not follow one another"):
        fetch("shakespeare", tmp_path / "shakespeare", lambda *_: None, source)


def test_a_folder_that_cannot_be_written_is_noticed_before_the_download(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written: choose another --data-dir"):
        fetch("femnist", tmp_path / "file" / "femnist", lambda *_: pytest.fail("downloaded"))


def test_what_cannot_be_reached_says_what_to_do_without_network(tmp_path: Path) -> None:
    with pytest.raises(FileError) as raised:
        fetch("femnist", tmp_path / "femnist", lambda *_: None, str(tmp_path / "nowhere"))
    message = str(raised.value)
    assert "\n" not in message
    assert "without network, put LEAF's json (train/ and test/) into" in message
    assert "--task femnist-standin" in message


def test_without_the_library_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(FileError, match=r"pip install -c constraints.txt '\.\[hub\]'"):
        fetch("femnist", tmp_path, lambda *_: None)
