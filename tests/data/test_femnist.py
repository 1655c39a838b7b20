import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data import cache
from asyncfeded.data.femnist import Writers, femnist, load_writers, read_leaf_writers
from leaf_folders import image, write_femnist, write_side

SIZES = {"f0001": (9, 2), "f0002": (5, 1), "f0003": (20, 2), "f0004": (7, 1), "f0005": (30, 3)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_femnist(tmp_path / "femnist", SIZES)


def cache_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "cache").glob("writers-*.safetensors")
    return path


def test_pixels_are_bytes_and_labels_and_the_split_are_leafs(folder: Path) -> None:
    writer = load_writers(folder).writer("f0001")
    assert writer.pixels.dtype == np.uint8
    assert writer.pixels.shape == (11, 28, 28)
    # 255 times what stands in the file, the first row of the first image.
    expected = [round(255 * value) for value in image(0, 0, 0)[:28]]
    assert writer.pixels[0, 0].tolist() == expected
    assert writer.labels.tolist() == [*range(9), 0, 1]
    assert writer.in_test.tolist() == [False] * 9 + [True] * 2


def test_an_image_that_a_writer_has_twice_counts_once_and_stays_in_training(tmp_path: Path) -> None:
    # Training has image 1 twice; the test side has image 2 of the training side, and its own 3.
    write_side(tmp_path, "train", 0, {"w": {"x": [image(1), image(2), image(1)], "y": [4, 5, 4]}})
    write_side(tmp_path, "test", 0, {"w": {"x": [image(2), image(3)], "y": [5, 6]}})
    writer = load_writers(tmp_path).writer("w")
    assert writer.labels.tolist() == [4, 5, 6]
    assert writer.in_test.tolist() == [False, False, True]


def test_no_image_of_a_client_is_on_both_sides(folder: Path) -> None:
    data = femnist(load_writers(folder), clients=5, min_examples=1)
    for client in data.train:
        train = {x.tobytes() for x in data.train[client].x}
        assert not train & {x.tobytes() for x in data.test[client].x}


def test_json_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_writers(folder)
    monkeypatch.setattr("asyncfeded.data.femnist.read_leaf_writers", lambda _: pytest.fail("again"))
    second = load_writers(folder)
    assert second.names == first.names
    for name in ("offsets", "pixels", "labels", "in_test"):
        assert np.array_equal(getattr(second, name), getattr(first, name))


def test_a_changed_file_is_read_again(folder: Path) -> None:
    load_writers(folder)
    write_side(folder, "train", 2, {"f0005": {"x": [image(5, 5), image(5, 6)], "y": [1, 2]}})
    assert load_writers(folder).sizes["f0005"] == 5


def test_a_cache_that_breaks_off_is_made_again(folder: Path, tmp_path: Path) -> None:
    first = load_writers(folder)
    path = cache_file(tmp_path)
    for length in (0, 4, 100, path.stat().st_size - 1):
        path.write_bytes(path.read_bytes()[:length])
        assert np.array_equal(load_writers(folder).pixels, first.pixels)
        assert Writers.read(path).names == first.names


def test_an_interrupted_write_leaves_no_cache(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("asyncfeded.files.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_writers(folder)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_folder_that_cannot_be_written_costs_only_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASYNCFEDED_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert len(load_writers(folder).names) == 5


def test_a_new_format_makes_old_caches_void(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_writers(folder)
    monkeypatch.setattr(cache, "FORMAT", "next")
    read = []

    def reading(folder: Path) -> Writers:
        read.append(folder)
        return read_leaf_writers(folder)

    monkeypatch.setattr("asyncfeded.data.femnist.read_leaf_writers", reading)
    load_writers(folder)
    assert read == [folder]


def test_a_fetched_file_with_other_arrays_is_refused(tmp_path: Path) -> None:
    from asyncfeded.data.arrays import write_arrays

    write_arrays(tmp_path / "femnist.safetensors", {"a": np.zeros(3)}, [], "")
    with pytest.raises(
        FileError, match="it must hold in_test, labels, offsets, pixels; it holds a"
    ):
        load_writers(tmp_path)


def test_a_fetched_file_whose_parts_do_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    writers = load_writers(folder)
    fetched = tmp_path / "fetched" / "femnist.safetensors"
    Writers(
        writers.names, writers.offsets + 1, writers.pixels, writers.labels, writers.in_test
    ).write(fetched, "a test")
    with pytest.raises(FileError, match="is not FEMNIST's: remove it and make it again"):
        load_writers(fetched.parent)


def test_writers_are_chosen_by_number_seed_and_size(folder: Path) -> None:
    writers = load_writers(folder)
    three = femnist(writers, clients=3, seed=0, min_examples=8)
    assert list(three.train) == ["client-0", "client-1", "client-2"]
    assert set(three.sources.values()) <= {"f0001", "f0003", "f0004", "f0005"}
    four = femnist(writers, clients=4, seed=0, min_examples=8)
    assert list(four.sources.values())[:3] == list(three.sources.values())
    chosen = {
        tuple(femnist(writers, 3, seed, min_examples=8).sources.values()) for seed in range(9)
    }
    assert len(chosen) > 1


def test_more_clients_than_writers_is_refused_with_the_number_there_is(folder: Path) -> None:
    with pytest.raises(SettingError, match="at most 2, the number of writers with at least 12"):
        femnist(load_writers(folder), clients=3, min_examples=12)


def test_a_writer_with_nothing_to_test_is_never_chosen(tmp_path: Path) -> None:
    write_side(tmp_path, "train", 0, {n: {"x": [image(1), image(2)], "y": [1, 2]} for n in "ab"})
    write_side(tmp_path, "test", 0, {"a": {"x": [image(3)], "y": [1]}})
    writers = load_writers(tmp_path)
    assert femnist(writers, clients=1, min_examples=1).sources == {"client-0": "a"}
    with pytest.raises(SettingError, match="at most 1"):
        femnist(writers, clients=2, min_examples=1)


def test_a_cap_keeps_the_share_of_test_images(folder: Path) -> None:
    data = femnist(load_writers(folder), clients=5, min_examples=1, max_examples=20)
    sizes = {data.sources[c]: (len(data.train[c]), len(data.test[c])) for c in data.train}
    # f0005 has 30 and 3: a cap of 20 leaves 18 and 2. Those below the cap keep what they have.
    assert sizes == {
        **{n: s for n, s in SIZES.items() if sum(s) <= 20},
        "f0003": (18, 2),
        "f0005": (18, 2),
    }


def test_a_shard_written_by_leaf_has_more_keys_than_we_need(folder: Path) -> None:
    path = folder / "train" / "all_data_0_niid_05_keep_0_train_9.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hierarchies": []}))
    assert len(load_writers(folder).names) == 5


def test_a_split_by_user_leaves_nobody_to_choose_and_says_so(tmp_path: Path) -> None:
    write_side(tmp_path, "train", 0, {"a": {"x": [image(1)], "y": [1]}})
    write_side(tmp_path, "test", 0, {"b": {"x": [image(2)], "y": [1]}})
    with pytest.raises(SettingError, match="no writer has both: make the data with LEAF's -t samp"):
        femnist(load_writers(tmp_path), clients=1, min_examples=1)


@pytest.mark.parametrize("names", ["5", "null", '"ab"', '["a", "a"]', "[1, 2]", "{}", "[", None])
def test_a_file_whose_names_are_odd_is_refused(tmp_path: Path, names: str | None) -> None:
    arrays = {
        "offsets": np.array([0, 1, 2]),
        "pixels": np.zeros((2, 28, 28), np.uint8),
        "labels": np.zeros(2, np.uint8),
        "in_test": np.zeros(2, bool),
    }
    content = save(arrays, None if names is None else {"names": names})
    (tmp_path / "femnist.safetensors").write_bytes(content)
    with pytest.raises(FileError, match="must have different names"):
        load_writers(tmp_path)


def test_a_file_with_a_single_number_for_an_array_is_refused(tmp_path: Path) -> None:
    arrays = {
        "offsets": np.array([0, 1]),
        "pixels": np.zeros((1, 28, 28), np.uint8),
        "labels": np.array(0, np.uint8),
        "in_test": np.zeros(1, bool),
    }
    (tmp_path / "femnist.safetensors").write_bytes(save(arrays, {"names": '["a"]'}))
    with pytest.raises(FileError, match="must hold labels as an array of uint8"):
        load_writers(tmp_path)


def test_two_data_sets_share_a_digest_only_if_they_are_the_same(folder: Path) -> None:
    writers = load_writers(folder)
    digests = [femnist(writers, 3, seed, min_examples=1).sha256 for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]
