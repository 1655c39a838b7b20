"""Synthetic(α, β): every client has its own linear model and its own inputs.

Tian Li et al., arXiv:1812.06127. For client k:

    n_k = 5 · (int(lognormal(4, 2)) + 50)                 examples, heavy-tailed
    u_k ~ N(0, α²)    W_k ~ N(u_k, 1)    b_k ~ N(u_k, 1)  its model, 60 × 10
    B_k ~ N(0, β²)    v_k ~ N(B_k, 1)                     the mean of its inputs
    x   ~ N(v_k, diag(j^−1.2))           y = argmax(x · W_k + b_k)

α sets how much the models differ, β how much the inputs do. There is no label noise.

Up to 1,000 clients have the data of the published program, draw for draw: Synthetic(1, 1) with 10
clients and seed 0 is the data set of the paper. The program draws all clients from one stream, so
no client can be made without the clients before it. More than 1,000 clients therefore have a
generator each, and n_k without the factor 5: other data of the same law, made when needed.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from asyncfeded import randomness
from asyncfeded.core.errors import require
from asyncfeded.data.federated import Examples, FederatedData, held_out, random_sides
from asyncfeded.data.published_synthetic import (
    CLASSES,
    DEVIATIONS,
    FEATURES,
    SyntheticSettings,
    published_examples,
    published_sizes,
    published_users,
)
from asyncfeded.on_demand import ClientNames, OnDemand

MOST_PUBLISHED = 1000
"""The largest number of clients that the published program makes."""
KEPT_CLIENTS = 16
"""A process keeps the examples of this many clients of the published program."""


def synthetic(
    alpha: float,
    beta: float,
    clients: int,
    seed: int = 0,
    *,
    num_examples: Sequence[int] | None = None,
    max_examples: int | None = None,
    test_share: float = 0.1,
) -> FederatedData:
    """Make Synthetic(α, β) for any number of clients; the same seed gives the same data.

    `num_examples` gives the sizes instead of drawing them; `max_examples` keeps a client's first
    examples. A random tenth of them is for testing. Examples are made when they are needed.
    """
    require(alpha >= 0, "alpha", "at least 0", alpha)
    require(beta >= 0, "beta", "at least 0", beta)
    require(clients >= 1, "clients", "at least 1", clients)
    require(0 < test_share < 1, "test_share", "above 0 and below 1", test_share)
    both = "at least 2, one to train and one to test"
    require(max_examples is None or max_examples >= 2, "max_examples", both, max_examples)
    if num_examples is not None:
        given = len(num_examples)
        require(given == clients, "num_examples", f"a size for each of {clients} clients", given)
        require(min(num_examples) >= 2, "num_examples", both, min(num_examples))
    make = _published if clients <= MOST_PUBLISHED else _one_by_one
    sizes = None if num_examples is None else tuple(num_examples)
    return make(SyntheticSettings(alpha, beta, clients, seed, sizes), max_examples, test_share)


def _published(
    settings: SyntheticSettings, max_examples: int | None, test_share: float
) -> FederatedData:
    """The users of the published program, at most 1,000."""
    names = ClientNames(settings.users)
    counts = [min(size, max_examples or size) for size in published_sizes(settings)]

    def parts(name: str) -> tuple[Examples, Examples]:
        index = names.index(name)
        return _published_parts(settings, index, counts[index], test_share)

    return FederatedData(
        _title(settings),
        CLASSES,
        train=OnDemand(names, lambda name: parts(name)[0]),
        test=OnDemand(names, lambda name: parts(name)[1]),
        sizes={
            name: count - _tests(count, test_share)
            for name, count in zip(names, counts, strict=True)
        },
    )


@lru_cache(maxsize=KEPT_CLIENTS)
def _published_parts(
    settings: SyntheticSettings, index: int, count: int, test_share: float
) -> tuple[Examples, Examples]:
    """The training and the test examples of a user, in the order in which they were made.

    The published program shuffles without a seed, so its own choice is not known.
    """
    x, y = published_examples(published_users(settings)[index], count)
    examples = Examples(x.astype(np.float32), y.astype(np.int64))
    draw = randomness.generator(settings.seed, "test-split", ClientNames(settings.users)[index])
    train, test = random_sides(count, _tests(count, test_share), draw)
    return examples.take(train), examples.take(test)


def _tests(count: int, share: float) -> int:
    """The number of a user's examples for testing: what int(0.9 · n) leaves, but not all."""
    return min(count - 1, count - int((1 - share) * count))


def _one_by_one(
    settings: SyntheticSettings, max_examples: int | None, test_share: float
) -> FederatedData:
    """Clients with a generator each: a smaller federation is the beginning of a larger one."""
    names = ClientNames(settings.users)

    def size_of(index: int, draw: np.random.Generator) -> int:
        drawn = int(draw.lognormal(4.0, 2.0)) + 50
        if settings.sizes is not None:
            return settings.sizes[index]
        return drawn if max_examples is None else min(drawn, max_examples)

    def parts(name: str) -> tuple[Examples, Examples]:
        index = names.index(name)
        draw = _client_generator(settings, index)
        size = size_of(index, draw)
        examples = _client_examples(draw, settings.alpha, settings.beta, size)
        tests = slice(held_out(size, test_share))
        trains = slice(held_out(size, test_share), None)
        return (
            Examples(examples.x[trains], examples.y[trains]),
            Examples(examples.x[tests], examples.y[tests]),
        )

    def train_size(name: str) -> int:
        index = names.index(name)
        size = size_of(index, _client_generator(settings, index))
        return size - held_out(size, test_share)

    return FederatedData(
        _title(settings),
        CLASSES,
        train=OnDemand(names, lambda name: parts(name)[0]),
        test=OnDemand(names, lambda name: parts(name)[1]),
        sizes=OnDemand(names, train_size),
    )


def _client_generator(settings: SyntheticSettings, index: int) -> np.random.Generator:
    """A client's own generator: older than keyed randomness, and kept because logs rest on it."""
    return np.random.default_rng([settings.seed, index])


def _client_examples(draw: np.random.Generator, alpha: float, beta: float, size: int) -> Examples:
    model_mean = draw.normal(0.0, alpha)
    weights = draw.normal(model_mean, 1.0, (FEATURES, CLASSES))
    bias = draw.normal(model_mean, 1.0, CLASSES)
    input_mean = draw.normal(draw.normal(0.0, beta), 1.0, FEATURES)
    x = input_mean + DEVIATIONS * draw.standard_normal((size, FEATURES))
    y = np.argmax(x @ weights + bias, axis=1)
    return Examples(x.astype(np.float32), y.astype(np.int64))


def _title(settings: SyntheticSettings) -> str:
    return f"synthetic-{settings.alpha:g}-{settings.beta:g}"
