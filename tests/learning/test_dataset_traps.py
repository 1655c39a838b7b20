"""Data sets that look right and are not: refused in one line instead of read wrongly."""

from typing import Any

import numpy as np
import pytest
import torch

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import as_examples

X, Y = torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("dataset", "given"),
    [
        (torch.utils.data.TensorDataset(X, Y, torch.ones(3)), "3 values"),
        ((X, Y, torch.ones(3)), "a Tensor"),
        ([X, Y], "a Tensor"),
        ([{"x": 1.0, "y": 0}], "a dict"),
        ([(1.0,)], "1 value"),
    ],
)
def test_an_example_that_is_no_pair_is_refused(dataset: Any, given: str) -> None:
    with pytest.raises(
        SettingError, match=rf"^an example must be a pair \(input, target\); example 0 is {given}"
    ):
        as_examples(dataset)


@pytest.mark.parametrize(
    ("dataset", "part"),
    [
        ([({"words": X[0]}, 0)], "inputs"),
        ([(X[0], 0), (torch.zeros(3), 0)], "inputs"),
        ([(X[0], "cat")], "targets"),
        (({"words": X}, Y), "inputs"),
        (([[1.0, 2.0], [3.0]], [0, 1]), "inputs"),
        ((X, ["cat", "dog", "cat"]), "targets"),
        ((np.array(["a", "b"], dtype=object), [0, 1]), "inputs"),
        ((torch.tensor(1.0), torch.tensor(1.0)), "inputs"),
    ],
)
def test_inputs_and_targets_must_be_numbers_of_one_shape(dataset: Any, part: str) -> None:
    with pytest.raises(
        SettingError, match=rf"^{part} must be numbers, of the same shape for every example; "
    ) as raised:
        as_examples(dataset)
    assert "\n" not in str(raised.value)


def test_pairs_may_be_lists() -> None:
    read = as_examples([[np.zeros(2), 1], [np.ones(2), 0]])
    assert read.x.tolist() == [[0, 0], [1, 1]]
    assert read.y.tolist() == [1, 0]
