"""FEMNIST and Shakespeare in the sizes of the paper's evaluation, and the random split."""

from pathlib import Path

import numpy as np
import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.data.federated import FederatedData, nearest, tenths
from asyncfeded.data.femnist import femnist, load_writers
from asyncfeded.data.role_files import load_roles
from asyncfeded.data.roles import WINDOW
from asyncfeded.data.shakespeare import shakespeare
from asyncfeded.experiment.run import load_data, resolve
from asyncfeded.experiment.settings import run_settings
from leaf_folders import decode, speech, write_femnist, write_roles

FEMNIST_TRAINING = [135, 322, 113, 168, 162, 181, 135, 272, 151, 170]
SHAKESPEARE_TRAINING = [1495, 1006, 5408, 3943, 1337, 2235, 1157, 1615, 995, 796]


def sizes_of(data: FederatedData) -> list[tuple[int, int]]:
    return [(len(data.train[name]), len(data.test[name])) for name in data.train]


def test_test_sets_are_a_tenth_of_all_together() -> None:
    # A tenth of 46 is 4.6, so 5. Whole tenths are 1, 1, 1 and 0; the two largest fractions, those
    # of 16 and 6, get one more.
    assert tenths([10, 14, 16, 6]) == [1, 1, 2, 1]
    assert tenths([25, 25]) == [3, 2]
    assert tenths([3, 2]) == [1, 1]  # none may have nothing to test


def test_every_wanted_size_gets_the_name_that_costs_least_in_all() -> None:
    sizes = {"a": 10, "b": 20, "c": 31, "d": 5, "e": 100}
    # 'c' is nearest to 30, but would leave 'b' to 35: 1 + 15, against 10 + 4.
    assert nearest("writers", sizes, 1, [30, 35, 9], seed=0) == ["b", "c", "a"]
    assert nearest("writers", sizes, 30, [1, 2], seed=0) in (["c", "e"], ["e", "c"])
    with pytest.raises(SettingError, match="clients must be at most 2, the number of writers with"):
        nearest("writers", sizes, 30, [1, 2, 3], seed=0)


def test_writers_are_matched_with_sizes_and_cut_to_them(tmp_path: Path) -> None:
    folder = write_femnist(tmp_path, {"a": (9, 2), "b": (28, 3), "c": (18, 2), "d": (45, 5)})
    data = femnist(load_writers(folder), 3, min_examples=1, sizes=[30, 12, 21])
    assert data.sources == {"client-0": "b", "client-1": "a", "client-2": "c"}
    # 'b' has 31 of 30 wanted; 'a' and 'c' have 11 and 20, fewer than wanted. 6 of 61 are tests.
    assert sizes_of(data) == [(27, 3), (10, 1), (18, 2)]


def test_images_of_wanted_sizes_are_parted_at_random_and_not_as_leaf_does(tmp_path: Path) -> None:
    folder = write_femnist(tmp_path, {"a": (45, 5)})
    writers = load_writers(folder)
    writer = writers.writer("a")
    leafs = {image.tobytes() for image in writer.pixels[writer.in_test]}
    chosen = set()
    for seed in (0, 0, 1):
        data = femnist(writers, 1, seed, min_examples=1, sizes=[50])
        tests = frozenset(x.tobytes() for x in data.test["client-0"].x)
        assert len(tests) == 5
        assert tests != leafs
        assert not tests & {x.tobytes() for x in data.train["client-0"].x}
        chosen.add(tests)
    assert len(chosen) == 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_roles(tmp_path / "shakespeare", {"HAMLET": 3000, "OPHELIA": 2000})


def test_the_random_split_keeps_the_first_windows_and_tests_a_tenth_of_them(folder: Path) -> None:
    data = shakespeare(
        load_roles(folder), 2, min_examples=1, max_examples=[505, 215], split="random"
    )
    assert sizes_of(data) == [(454, 51), (194, 21)]
    for (client, role), cap in zip(data.sources.items(), (505, 215), strict=True):
        text = speech(role, {"HAMLET": 3000, "OPHELIA": 2000}[role])
        first = {text[start : start + WINDOW + 1] for start in range(cap)}
        parts = data.train[client], data.test[client]
        found = [
            decode(x) + decode(y[None])
            for part in parts
            for x, y in zip(part.x, part.y, strict=True)
        ]
        assert set(found) == first
        assert all(part.per_epoch is None for part in parts)


def test_the_random_split_is_drawn_by_the_seed(folder: Path) -> None:
    roles = load_roles(folder)
    tests = [
        shakespeare(roles, 1, seed, min_examples=2500, split="random").test["client-0"].x.tobytes()
        for seed in (0, 0, 1)
    ]
    assert tests[0] == tests[1] != tests[2]


@pytest.mark.parametrize(
    ("task", "training", "tests"),
    [
        ("femnist-standin", FEMNIST_TRAINING, 201),
        ("shakespeare-standin", [n * 19980 / 19987 for n in SHAKESPEARE_TRAINING], 2220),
    ],
)
def test_with_the_paper_s_devices_a_task_has_the_paper_s_sizes(
    task: str, training: list[float], tests: int
) -> None:
    data = load_data(run_settings({"task": task}))
    sizes = np.array(sizes_of(data))
    np.testing.assert_allclose(sizes[:, 0], training, atol=1)
    assert sizes.sum(axis=0).tolist() == [9 * tests, tests]
    capped = load_data(run_settings({"task": task, "max_examples": 160}))
    assert max(sum(size) for size in sizes_of(capped)) == 160


def test_other_devices_have_the_split_by_position() -> None:
    for given, split in (
        ({}, "random"),
        ({"devices": "heterogeneous"}, "position"),
        ({"clients": 3}, "position"),
        ({"clients": 3, "split": "random"}, "random"),
        ({"split": "position"}, "position"),
    ):
        settings = run_settings({"task": "shakespeare-standin", **given})
        data = load_data(settings)
        assert resolve(settings).known(data)["split"] == split
        # Only the split by position draws the windows of a pass anew.
        assert (data.train["client-0"].per_epoch is None) == (split == "random")


@pytest.mark.parametrize("task", ["synthetic-1-1", "femnist-standin"])
def test_only_text_can_be_parted_by_position(task: str) -> None:
    with pytest.raises(SettingError, match=f"split must be 'auto' for task '{task}'; given 'pos"):
        load_data(run_settings({"task": task, "split": "position"}))
