from hashlib import sha256

import numpy as np
import pytest

from asyncfeded.data.federated import FederatedData
from asyncfeded.data.published_synthetic import (
    SyntheticSettings,
    published_examples,
    published_users,
)
from asyncfeded.data.synthetic import synthetic
from asyncfeded.experiment.run import load_data
from asyncfeded.experiment.settings import run_settings

SIZES = [9545, 855, 2180, 24380, 11685, 285, 2075, 450, 470, 870]
"""Of the ten users of the paper's Synthetic-1-1."""


@pytest.fixture(scope="module")
def paper() -> FederatedData:
    return load_data(run_settings({"task": "synthetic-1-1"}))


def published_program(alpha: float, beta: float, users: int, factor: int) -> list[np.ndarray]:
    """The inputs as the published program draws them, `multivariate_normal` and all."""
    draw = np.random.RandomState(0)
    sizes = (draw.lognormal(4, 2, users).astype(int) + 50) * factor
    model_means = draw.normal(0, alpha, users)
    centers = draw.normal(0, beta, users)
    input_means = [draw.normal(center, 1, 60) for center in centers]
    covariance = np.diag(np.arange(1, 61) ** -1.2)
    inputs = []
    for mean, input_mean, size in zip(model_means, input_means, sizes, strict=True):
        draw.normal(mean, 1, (60, 10))
        draw.normal(mean, 1, 10)
        inputs.append(draw.multivariate_normal(input_mean, covariance, size))
    return inputs


def test_the_default_task_has_the_sizes_of_the_paper(paper: FederatedData) -> None:
    sizes = [len(paper.train[name]) + len(paper.test[name]) for name in paper.train]
    assert sizes == SIZES
    assert [len(train) for train in paper.train.values()] == [int(0.9 * size) for size in SIZES]
    assert list(paper.sizes.values()) == [int(0.9 * size) for size in SIZES]
    assert sum(len(test) for test in paper.test.values()) == 5282


def test_class_5_is_70_percent_of_the_paper_s_examples(paper: FederatedData) -> None:
    # After a round that only client 4 survives, the authors' model scores 70.07 % on a tenth.
    labels = np.concatenate(
        [part.y for side in (paper.train, paper.test) for part in side.values()]
    )
    assert np.mean(labels == 5) == pytest.approx(0.701, abs=0.0005)


def test_the_paper_s_examples_have_a_known_digest(paper: FederatedData) -> None:
    # Rounded, because libraries for mathematics differ in the last bit.
    digest = sha256()
    for name in paper.train:
        for part in (paper.train[name], paper.test[name]):
            digest.update(np.round(1000 * part.x.astype(np.float64)).astype("<i4").tobytes())
            digest.update(part.y.astype("<i4").tobytes())
    assert digest.hexdigest() == "0109a54f36cf6aec12576dfd153bd50b5f2460f18370a4c7bf1cd5f1184444ca"


def test_inputs_are_those_that_the_published_program_draws() -> None:
    users = published_users(SyntheticSettings(0.5, 2.0, 4, seed=0))
    for user, expected in zip(users, published_program(0.5, 2.0, 4, factor=5), strict=True):
        x, _ = published_examples(user, most=user.size)
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)


def test_a_random_tenth_is_for_testing_and_no_example_is_on_both_sides() -> None:
    data = synthetic(1, 1, 1, num_examples=[1000])
    train, test = ({x.tobytes() for x in side["client-0"].x} for side in (data.train, data.test))
    assert (len(train), len(test)) == (900, 100)
    assert not train & test
    # The user's examples in the order in which they are drawn: those of the test set are spread.
    x, _ = published_examples(published_users(SyntheticSettings(1, 1, 1, 0, (1000,)))[0], most=1000)
    places = [place for place, row in enumerate(x.astype(np.float32)) if row.tobytes() in test]
    assert all(len([p for p in places if low <= p < low + 250]) > 10 for low in range(0, 1000, 250))


def test_a_cap_keeps_the_first_examples_of_each_client(paper: FederatedData) -> None:
    capped = load_data(run_settings({"task": "synthetic-1-1", "max_examples": 300}))
    totals = [len(capped.train[name]) + len(capped.test[name]) for name in capped.train]
    assert totals == [min(size, 300) for size in SIZES]
    rows = {x.tobytes() for side in (paper.train, paper.test) for x in side["client-9"].x}
    assert {x.tobytes() for x in capped.train["client-9"].x} < rows


def test_seeds_beyond_32_bits_are_told_apart() -> None:
    sizes = [
        tuple(synthetic(1, 1, 5, seed).sizes.values()) for seed in (1, 1 + (1 << 32), 1 + (2 << 32))
    ]
    assert len(set(sizes)) == 3


def test_examples_are_kept_for_the_next_time_they_are_asked_for() -> None:
    first, again = (synthetic(1, 1, 3).train["client-1"] for _ in range(2))
    assert first is again
