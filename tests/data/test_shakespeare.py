import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data.federated import Examples
from asyncfeded.data.role_files import load_roles, role_from_windows
from asyncfeded.data.roles import CLASSES, OTHER, WINDOW, Roles, encode
from asyncfeded.data.shakespeare import shakespeare
from leaf_folders import decode, speech, windows, write_leaf_shakespeare, write_roles, write_side

LENGTHS = {"HAMLET": 3000, "OPHELIA": 2000, "GHOST": 1200, "GUARD": 300}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_roles(tmp_path / "shakespeare", LENGTHS)


def test_characters_have_leafs_numbers_and_one_more_for_all_others() -> None:
    assert encode("\n aé}").tolist() == [0, 1, 53, OTHER, 79]
    assert OTHER == CLASSES - 1 == 80
    assert decode(encode("Be not afeard;")) == "Be not afeard;"


def test_an_example_is_a_window_of_80_characters_and_the_one_after(folder: Path) -> None:
    data = shakespeare(load_roles(folder), clients=3, min_examples=900, max_examples=None)
    (client,) = [c for c, source in data.sources.items() if source == "HAMLET"]
    text = speech("HAMLET", 3000)
    for index in (0, 7, 1000):
        assert decode(data.train[client].x[index]) == text[index : index + WINDOW]
        assert decode(data.train[client].y[index : index + 1]) == text[index + WINDOW]


def test_no_test_character_was_seen_in_training(folder: Path) -> None:
    # 3,000 characters have 2,920 windows: 2,628 to train, the last with the target 2,627 + 80.
    # Then a gap of 80 windows: the first test window starts at 2,708.
    roles = Roles.gather([role_from_windows("r", windows(speech("r", 3000)))])
    data = shakespeare(roles, clients=1, max_examples=None, min_examples=1)
    text = speech("r", 3000)
    train, test = data.train["client-0"], data.test["client-0"]
    assert (len(train), len(test)) == (2628, 2920 - 2628 - WINDOW)
    assert decode(train.x[-1]) + decode(train.y[-1:]) == text[2627:2708]
    assert decode(test.x[0]) == text[2708 : 2708 + WINDOW]


def test_windows_are_views_into_the_text(folder: Path) -> None:
    data = shakespeare(load_roles(folder), clients=3, min_examples=900, max_examples=None)
    for examples in (*data.train.values(), *data.test.values()):
        assert examples.x.strides == (1, 1)
        assert not examples.x.flags.owndata


def test_a_cap_bounds_a_pass_and_leaves_all_windows_to_draw_from(folder: Path) -> None:
    data = shakespeare(load_roles(folder), 1, min_examples=2900, max_examples=100)
    train = data.train["client-0"]
    assert (len(train), train.per_epoch, len(train.y)) == (90, 90, 2628)
    assert train.x.strides == (1, 1)


def test_capped_test_windows_are_seeded_and_spread_over_the_text(folder: Path) -> None:
    roles = load_roles(folder)
    text = speech("HAMLET", 3000)

    def starts(seed: int) -> list[int]:
        data = shakespeare(roles, 1, seed, min_examples=2900, max_examples=100)
        return [text.index(decode(x)) for x in data.test["client-0"].x]

    first = starts(0)
    assert first == starts(0) != starts(1)
    # 212 test windows from 2,708 on, in 10 parts of 21.2: one from each.
    parts = [(2708 + int(21.2 * i), 2708 + int(21.2 * (i + 1))) for i in range(10)]
    assert all(low <= start < high for (low, high), start in zip(parts, first, strict=True))


def test_a_cap_per_client(folder: Path) -> None:
    data = shakespeare(load_roles(folder), 2, min_examples=1900, max_examples=[50, 200])
    assert [len(examples) for examples in data.train.values()] == [45, 180]
    with pytest.raises(SettingError, match="max_examples must be at least 2"):
        shakespeare(load_roles(folder), 2, min_examples=1900, max_examples=1)


def test_roles_too_short_for_the_gap_are_never_chosen(folder: Path) -> None:
    data = shakespeare(load_roles(folder), clients=3, min_examples=1)
    assert "GUARD" not in data.sources.values()
    assert all(len(test) > 0 for test in data.test.values())
    with pytest.raises(SettingError, match="at most 3, the number of roles with at least 810"):
        shakespeare(load_roles(folder), clients=4, min_examples=1)


def test_leafs_windows_are_put_together_to_text_again(tmp_path: Path) -> None:
    texts = {name: speech(name, length) for name, length in LENGTHS.items() if length > 1000}
    roles = load_roles(write_leaf_shakespeare(tmp_path, texts))
    role = roles.role("HAMLET")
    # 2,920 windows: LEAF trains on 2,628 and leaves out 79, so two stretches of text remain.
    assert role.stretches.tolist() == [2628 + WINDOW, 2920 - 2628 - 79 + WINDOW]
    assert decode(role.codes[:2708]) == texts["HAMLET"][:2708]
    assert decode(role.codes[2708:]) == texts["HAMLET"][2707:]


def test_no_leaf_character_is_on_both_sides_either(tmp_path: Path) -> None:
    texts = {"r": speech("r", 3000)}
    roles = load_roles(write_leaf_shakespeare(tmp_path, texts))
    data = shakespeare(roles, 1, min_examples=1, max_examples=None)
    starts_of = {window: start for start, (window, _) in enumerate(windows(texts["r"]))}

    def places(examples: Examples) -> set[int]:
        """Where in the text the characters of windows and targets stand."""
        starts = [starts_of[decode(x)] for x in examples.x]
        return {start + offset for start in starts for offset in range(WINDOW + 1)}

    trained, tested = places(data.train["client-0"]), places(data.test["client-0"])
    assert trained
    assert tested
    assert not trained & tested


def test_windows_out_of_order_are_refused_because_they_cannot_be_kept_apart(tmp_path: Path) -> None:
    every = windows(speech("r", 400))
    shuffled = [every[i] for i in np.random.default_rng(0).permutation(len(every))]
    for side in ("train", "test"):
        x, y = ([pair[part] for pair in shuffled] for part in (0, 1))
        write_side(tmp_path, side, 0, {"ROLE": {"x": x, "y": y}})
    with pytest.raises(
        FileError, match=r"user 'ROLE': its windows do not follow one another.*niid"
    ):
        load_roles(tmp_path)


def test_a_plain_roles_file_is_read_too_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "roles.json").write_text(json.dumps({"A": {"text": speech("A", 2000)}}))
    first = load_roles(tmp_path)
    monkeypatch.setattr("asyncfeded.data.role_files.read_roles", lambda _: pytest.fail("again"))
    assert np.array_equal(load_roles(tmp_path).codes, first.codes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"A": {"text": ""}}', "roles.json', role 'A': its text is empty: remove the role"),
        ('{"A": {"text": "  "}}', "role 'A': its text is empty"),
        ('{"A": {"speaker": "A"}}', "role 'A': must have a text"),
        ('{"A": "words"}', "role 'A': must have a text"),
        ("[]", "must be an object of roles"),
        ("{}", "must be an object of roles"),
        ('{"A": {"te', "roles.json' is not json"),
    ],
)
def test_a_spoilt_roles_file_is_named_with_its_role(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "roles.json").write_text(content)
    with pytest.raises(FileError) as raised:
        load_roles(tmp_path)
    assert message in str(raised.value)


def test_a_gzip_file_that_breaks_off_is_refused(folder: Path) -> None:
    path = folder / "roles.json.gz"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileError, match=r"roles.json.gz' cannot be read: "):
        load_roles(folder)


def test_a_gzip_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncfeded.data.role_files.MAX_ROLES_BYTES", 1000)
    (tmp_path / "roles.json.gz").write_bytes(gzip.compress(b" " * 2000))
    with pytest.raises(FileError, match="must unpack to at most 1 GiB"):
        load_roles(tmp_path)


def test_a_folder_of_neither_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"must have roles.json or roles.json.gz, or train/ and"):
        load_roles(tmp_path)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ("short", "a", "every x must be 80 characters; sample 0 is not"),
        ("x" * 80, "ab", "every y must be one character; sample 0 is not"),
    ],
)
def test_a_leaf_window_of_another_size_is_refused(
    tmp_path: Path, x: str, y: str, message: str
) -> None:
    for side in ("train", "test"):
        write_side(tmp_path, side, 0, {"ROLE": {"x": [x], "y": [y]}})
    with pytest.raises(FileError, match=f"user 'ROLE': {message}"):
        load_roles(tmp_path)
