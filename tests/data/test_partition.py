"""Every example goes to exactly one client; what differs is who gets which class."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfeded.core.errors import SettingError
from asyncfeded.data import partition
from asyncfeded.data.partition import Partition

Deal = Callable[[npt.NDArray[np.int64], int, int], Partition]

DEALS: dict[str, Deal] = {
    "iid": partition.iid,
    "dirichlet": lambda labels, clients, seed: partition.dirichlet(labels, clients, 0.5, seed),
    "shards": lambda labels, clients, seed: partition.shards(labels, clients, 2, seed),
}
LABELS = np.repeat(np.arange(10), 100)


@pytest.mark.parametrize("deal", DEALS.values(), ids=DEALS)
def test_every_example_goes_to_exactly_one_client(deal: Deal) -> None:
    parts = deal(LABELS, 7, 0)
    assert list(parts) == [f"client-{i}" for i in range(7)]
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(1000))
    assert all(len(places) > 0 for places in parts.values())
    assert all(np.all(np.diff(places) > 0) for places in parts.values())


@pytest.mark.parametrize("deal", DEALS.values(), ids=DEALS)
def test_a_deal_is_seeded(deal: Deal) -> None:
    def flat(seed: int) -> list[list[int]]:
        return [places.tolist() for places in deal(LABELS, 7, seed).values()]

    assert flat(3) == flat(3) != flat(4)


@settings(max_examples=30)
@given(
    labels=st.lists(st.integers(0, 3), min_size=12, max_size=60),
    clients=st.integers(1, 4),
    name=st.sampled_from(sorted(DEALS)),
    seed=st.integers(0, 5),
)
def test_nothing_is_lost_or_dealt_twice(
    labels: list[int], clients: int, name: str, seed: int
) -> None:
    parts = DEALS[name](np.array(labels), clients, seed)
    dealt = sorted(place for places in parts.values() for place in places.tolist())
    assert dealt == list(range(len(labels)))


def test_iid_clients_have_equal_sizes_and_all_classes() -> None:
    parts = partition.iid(LABELS, 4)
    assert [len(places) for places in parts.values()] == [250] * 4
    assert all(len(np.unique(LABELS[places])) == 10 for places in parts.values())


def test_two_shards_give_a_client_at_most_two_classes() -> None:
    # 20 shards of 50, each within one of the ten classes of 100.
    parts = partition.shards(LABELS, clients=10, shards_per_client=2)
    assert all(len(places) == 100 for places in parts.values())
    assert all(len(np.unique(LABELS[places])) <= 2 for places in parts.values())


def test_a_smaller_alpha_makes_clients_less_alike() -> None:
    def largest_share(alpha: float) -> float:
        parts = partition.dirichlet(LABELS, 10, alpha, seed=0)
        counts = partition.class_counts(LABELS, parts, 10)
        return float((counts.max(axis=1) / counts.sum(axis=1)).mean())

    assert largest_share(0.1) > largest_share(1.0) > largest_share(100.0)
    assert largest_share(1000.0) == pytest.approx(0.1, abs=0.02)


def test_dirichlet_keeps_to_a_minimum_of_examples() -> None:
    parts = partition.dirichlet(LABELS, 10, 0.3, seed=0, min_examples=40)
    assert min(len(places) for places in parts.values()) >= 40
    with pytest.raises(
        SettingError, match=r"alpha 0.001 left some of 10 clients with fewer than 9"
    ):
        partition.dirichlet(LABELS, 10, 0.001, min_examples=95)


def test_a_column_makes_a_client_of_each_value() -> None:
    parts = partition.by_column(["b", "a", "b", "c"])
    assert {name: places.tolist() for name, places in parts.items()} == {
        "a": [1],
        "b": [0, 2],
        "c": [3],
    }


def test_counts_by_client_and_class() -> None:
    parts = {"a": np.array([0, 1]), "b": np.array([2, 3, 4])}
    counts = partition.class_counts([0, 0, 1, 1, 2], parts, 3)
    assert counts.tolist() == [[2, 0, 0], [0, 2, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: partition.iid([0, 1], 3), "clients must be from 1 to 2 examples; given 3"),
        (lambda: partition.iid([[0], [1]], 1), r"labels must be one per example; given the shape"),
        (lambda: partition.dirichlet([0, 1], 2, 0.0), "alpha must be a finite number above 0"),
        (
            lambda: partition.dirichlet([0, 1], 2, 1.0, min_examples=2),
            "min_examples must be from 1",
        ),
        (lambda: partition.shards([0, 1], 2, 2), "shards_per_client must be from 1 to 1; given 2"),
        (lambda: partition.by_column([]), "column must be one value per example"),
        (lambda: partition.by_column([1.0, float("nan")]), "column must have a value in every row"),
        (lambda: partition.iid([1.0, float("nan")], 1), "labels must be finite"),
        (
            lambda: partition.by_column(np.array(["a", 1], dtype=object)),
            "column must be all numbers or all texts",
        ),
    ],
)
def test_what_cannot_be_dealt_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        call()
