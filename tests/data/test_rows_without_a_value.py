"""A row whose column has no value belongs to no client: it is refused, not lost."""

from typing import Any

import numpy as np
import pytest

from asyncfeded import partition
from asyncfeded.core.errors import SettingError

STRINGS = np.dtypes.StringDType(na_object=np.nan)


@pytest.mark.parametrize(
    "column",
    [
        ["a", None, "a"],
        ["a", "", "b"],
        ["a", "  ", "b"],
        ["a", float("nan"), "b"],
        [1.0, float("nan"), 2.0],
        np.array(["a", None, "b"], dtype=object),
        np.array([1, None, 2], dtype=object),
        np.array(["a", float("nan"), "b"], dtype=object),
        np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="datetime64[D]"),
        np.array(["a", np.nan, "b"], dtype=STRINGS),
        np.ma.array([1, 2, 3], mask=[False, True, False]),
    ],
    ids=repr,
)
def test_a_row_without_a_value_is_refused_by_its_place(column: Any) -> None:
    with pytest.raises(
        SettingError, match=r"^column must have a value in every row; row 1 \(counted from 0\) has"
    ):
        partition.by_column(column)


@pytest.mark.parametrize(
    "column",
    [
        np.array(["a", "b", "a"], dtype=object),
        np.array(["a", "b", "a"], dtype=STRINGS),
        ["a", "b", "a"],
    ],
)
def test_every_row_goes_to_a_client(column: Any) -> None:
    parts = partition.by_column(column)
    assert {name: places.tolist() for name, places in parts.items()} == {"a": [0, 2], "b": [1]}


def test_a_mixture_of_numbers_and_texts_is_refused() -> None:
    with pytest.raises(SettingError, match="must be all numbers or all texts"):
        partition.by_column(np.array([1, "1"], dtype=object))


def test_a_dirichlet_client_has_ten_examples_unless_told_otherwise() -> None:
    labels = np.repeat([0, 1], 50)
    parts = partition.dirichlet(labels, clients=5, alpha=0.5)
    assert min(len(places) for places in parts.values()) >= 10
    few = partition.dirichlet(np.repeat([0, 1], 8), clients=4, alpha=5.0)
    assert min(len(places) for places in few.values()) >= 1
