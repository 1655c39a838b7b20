"""Mappings that are values."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfeded import PersistentMap

changes = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from("abcd"), st.one_of(st.none(), st.integers())),
    max_size=40,
)


@given(changes)
def test_every_mapping_ever_made_keeps_its_entries(script: list[tuple[int, str, Any]]) -> None:
    """Each change starts from any mapping made before; a value of None removes the key."""
    made: list[tuple[PersistentMap[int], dict[str, int]]] = [(PersistentMap(), {})]
    for index, key, value in script:
        mapping, expected = made[index % len(made)]
        if value is None:
            rest = {k: v for k, v in expected.items() if k != key}
            made.append((mapping.without(key), rest))
        else:
            made.append((mapping.set(key, value), {**expected, key: value}))
        for past, entries in made:
            assert dict(past) == entries


def test_keys_come_in_alphabetical_order_whatever_was_set_first() -> None:
    mapping = PersistentMap[int]().set("b", 1).set("a", 2).set("c", 3).without("b").set("b", 4)
    assert list(mapping) == ["a", "b", "c"]
    assert repr(mapping) == "PersistentMap({'a': 2, 'b': 4, 'c': 3})"


def test_a_copy_has_the_entries_alone_and_not_the_history() -> None:
    old = PersistentMap({"z": 0})
    new = old
    for number in range(5000):
        new = new.set("a", number)
    assert dict(copy.deepcopy(old)) == dict(pickle.loads(pickle.dumps(old))) == {"z": 0}  # noqa: S301
    assert dict(copy.deepcopy(new)) == {"a": 4999, "z": 0}


def test_a_missing_key_is_missing() -> None:
    with pytest.raises(KeyError):
        PersistentMap({"a": 1}).without("a")["a"]
