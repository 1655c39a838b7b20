import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded.core.errors import SettingError
from asyncfeded.data.published_synthetic import CLASSES, FEATURES
from asyncfeded.data.synthetic import synthetic


def test_the_same_seed_gives_the_same_data_and_another_does_not() -> None:
    first, again, other = (synthetic(1, 1, 3, seed) for seed in (0, 0, 1))
    for name in first.train:
        assert np.array_equal(first.train[name].x, again.train[name].x)
        assert np.array_equal(first.test[name].y, again.test[name].y)
    assert not np.array_equal(first.train["client-0"].x[:5], other.train["client-0"].x[:5])


def test_a_tenth_of_every_client_s_examples_is_for_testing() -> None:
    data = synthetic(1, 1, 20)
    for name, train in data.train.items():
        test = data.test[name]
        assert len(test) == pytest.approx(0.1 * (len(train) + len(test)), abs=1)
        assert train.x.shape[1] == FEATURES
        assert train.x.dtype == np.float32
        assert 0 <= train.y.min() <= train.y.max() < CLASSES


@pytest.mark.parametrize(("clients", "factor"), [(1000, 5), (1001, 1)])
def test_sizes_are_log_normal_plus_fifty(clients: int, factor: int) -> None:
    # Above 1,000 clients the sizes are not times five. Nine tenths of them are for training.
    data = synthetic(1, 1, clients, max_examples=5000)
    sizes = np.array([data.sizes[name] for name in data.train])
    assert sizes.min() >= 45 * factor
    assert sizes.max() == 4500
    # The median of int(lognormal(4, 2)) + 50 is int(e⁴) + 50 = 104.
    assert np.median(sizes) == pytest.approx(0.9 * 104 * factor, rel=0.2)


def test_inputs_have_the_variances_of_the_recipe() -> None:
    data = synthetic(1, 1, 1, num_examples=[20_000])
    variances = data.train["client-0"].x.var(axis=0)
    np.testing.assert_allclose(variances, np.arange(1, 61) ** -1.2, rtol=0.06)


def test_labels_follow_a_linear_model_without_noise() -> None:
    # Then a linear classifier can get them right, up to where its fit stops short.
    torch.manual_seed(0)
    data = synthetic(0, 0, 1, seed=8, num_examples=[1000]).train["client-0"]
    assert np.bincount(data.y).max() < 0.8 * len(data)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    classifier = nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.LBFGS(
        classifier.parameters(), max_iter=2000, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def loss() -> float:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(classifier(x), y)
        value.backward()
        return value.item()

    optimizer.step(loss)
    assert (classifier(x).argmax(dim=1) == y).double().mean().item() > 0.99


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_beta_sets_how_much_the_inputs_of_clients_differ(spread: float) -> None:
    data = synthetic(0, spread, 200, num_examples=[50] * 200)
    means = [data.train[name].x.mean() for name in data.train]
    # v_k ~ N(B_k, 1) over 60 features: the mean of x varies with β² + 1/60.
    assert np.var(means) == pytest.approx(spread**2 + 1 / 60, rel=0.3)


def test_above_1000_clients_a_smaller_federation_is_the_beginning_of_a_larger_one() -> None:
    small, large = synthetic(1, 1, 1001), synthetic(1, 1, 2000)
    assert np.array_equal(small.train["client-1"].x, large.train["client-1"].x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -1}, "alpha must be at least 0; given -1"),
        ({"clients": 0}, "clients must be at least 1; given 0"),
        ({"test_share": 1.0}, "test_share must be above 0 and below 1; given 1.0"),
        ({"num_examples": [5]}, "num_examples must be a size for each of 2 clients; given 1"),
        (
            {"num_examples": [5, 1]},
            "num_examples must be at least 2, one to train",
        ),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        synthetic(**{"alpha": 1, "beta": 1, "clients": 2, **arguments})  # type: ignore[arg-type]
