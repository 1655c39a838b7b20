import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples, as_examples


def examples(count: int, per_epoch: int | None = None) -> TensorExamples:
    return TensorExamples(torch.zeros(count, 1), torch.zeros(count), per_epoch)


def test_a_pass_visits_every_example_once() -> None:
    order = examples(10).order(np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(10))


def test_a_capped_pass_visits_one_example_of_each_part_in_shuffled_order() -> None:
    capped = examples(100, per_epoch=10)
    assert len(capped) == 10
    order = capped.order(np.random.default_rng(0)).tolist()
    assert sorted(place // 10 for place in order) == list(range(10))
    assert order != sorted(order)


def test_a_capped_pass_is_drawn_anew_and_seeded() -> None:
    capped = examples(100, per_epoch=10)
    draw, again = np.random.default_rng(0), np.random.default_rng(0)
    first, second = capped.order(draw).tolist(), capped.order(draw).tolist()
    assert first == capped.order(again).tolist()
    assert second == capped.order(again).tolist()
    assert set(first) != set(second)


def test_a_pass_cannot_visit_more_than_there_are() -> None:
    assert sorted(examples(3, per_epoch=3).order(np.random.default_rng(0)).tolist()) == [0, 1, 2]
    for wrong in (0, 4):
        with pytest.raises(SettingError, match="per_epoch must be from 1 to the 3 examples; given"):
            examples(3, per_epoch=wrong)


def test_other_arrays_are_copied_whatever_their_strides() -> None:
    array = np.zeros((4, 6), dtype=np.float32)
    for part in (array, array[:, :3], array.T, array[::2]):
        kept = as_examples((part, np.zeros(len(part), dtype=np.int64)))
        array[:] = 9
        assert not kept.x.any()
        assert kept.x.is_contiguous()
        array[:] = 0


def test_windows_of_a_text_stay_views() -> None:
    text = np.arange(100, dtype=np.uint8)
    windows = sliding_window_view(text, 80, writeable=True)
    kept = as_examples((windows, np.zeros(len(windows), dtype=np.int64)))
    assert kept.x.stride() == (1, 1)
    assert kept.x[3].tolist() == list(range(3, 83))
