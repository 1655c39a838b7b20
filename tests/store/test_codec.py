"""A tree comes back from its bytes; bytes that hold none are a StateError, whatever they are."""

import json
import struct
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from asyncfeded import PersistentMap, StateError
from asyncfeded.store.codec import TREE, decode, encode, encode_in_pieces
from asyncfeded.tensors import packed


def written(text: str, **arrays: Any) -> bytes:
    return save({TREE: np.frombuffer(text.encode(), np.uint8), **arrays}, {"format": "1"})


def test_every_kind_of_value_comes_back() -> None:
    shared = np.arange(6, dtype=np.float32).reshape(2, 3)
    tree = {
        "plain": [None, True, -3, 2**70, 1.5, "é\ud800", []],
        "infinite": float("-inf"),
        "arrays": [shared, shared, np.empty((0, 7), np.int64), np.array(3, np.uint16)],
        "map": PersistentMap({"b": 1, "a": {"$x": None}}),
    }
    back = decode(encode(tree))
    assert encode(back) == encode(tree)
    assert isinstance(back["map"], PersistentMap)
    assert back["arrays"][0] is back["arrays"][1]
    back["arrays"][0][0, 0] = 7  # can be written to


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 200 + "]" * 200, "nested too deeply"),
        ("NaN", "not finite"),
        ("1e999", "not finite"),
        ("1" * 5000, "Exceeds the limit"),
        ('{"$array":"9"}', "KeyError"),
        ('{"$array":"a","x":1}', "unknown mark"),
        ('{"$float":"1e3"}', "unknown mark"),
        ('{"$map":["ab"]}', "no entry of a mapping"),
        ('{"$map":[["a",1],["a",2]]}', "no entry of a mapping"),
        ('{"$dict":[[1,2]]}', "no entry of a mapping"),
        ('{"$code":"import os"}', "unknown mark"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "Expecting value"),
    ],
)
def test_a_text_that_is_no_tree_is_refused(text: str, problem: str) -> None:
    with pytest.raises(StateError, match=f"the saved state is damaged.*{problem}") as caught:
        decode(written(text))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**60], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [0, 2**62, 8], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 2**63]},
        {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
    ],
)
def test_a_header_that_lies_is_refused(entry: dict[str, Any]) -> None:
    header = json.dumps({"a": entry, "__metadata__": {"format": "1"}}).encode()
    with pytest.raises(StateError, match="the saved state is damaged: "):
        decode(struct.pack("<Q", len(header)) + header + bytes(8))


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_a_header_of_another_length_is_refused(length: int) -> None:
    content = encode([1])
    with pytest.raises(StateError, match="no safetensors"):
        decode(struct.pack("<Q", length) + content[8:])


def test_bytes_that_end_early_are_refused() -> None:
    content = encode({"a": np.arange(3)})
    for size in range(len(content)):
        with pytest.raises(StateError):
            decode(content[:size])


def test_another_format_is_refused_by_name() -> None:
    content = save({TREE: np.frombuffer(b"1", np.uint8)}, {"format": "2"})
    with pytest.raises(StateError, match="has format '2', this version of asyncfeded reads form"):
        decode(content)
    with pytest.raises(StateError, match="has format None"):
        decode(save({TREE: np.frombuffer(b"1", np.uint8)}))


def test_our_own_bytes_are_those_of_safetensors_with_arrays_that_begin_aligned() -> None:
    arrays = {"a": np.arange(3, dtype=np.uint8), "b": np.arange(2.0), "c": np.zeros((0, 3), "f2")}
    content = packed(arrays, {"x": 'a "quoted" text'})
    read = load(content)
    assert sorted(read) == sorted(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert np.array_equal(read[name], array)
    assert content == save(arrays, {"x": 'a "quoted" text'})


def test_large_arrays_are_encoded_without_a_copy() -> None:
    array = np.arange(2**15, dtype=np.float32)
    pieces = encode_in_pieces(["text", array])
    assert any(np.shares_memory(np.frombuffer(piece, np.uint8), array) for piece in pieces)
    assert b"".join(pieces) == encode(["text", array])
