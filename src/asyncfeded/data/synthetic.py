"""Synthetic(α, β): every client has a linear model of its own and inputs of its own.

Tian Li et al., arXiv:1812.06127, as their generator makes it. For client k:

    n_k = int(lognormal(4, 2)) + 50                       examples, heavy-tailed
    u_k ~ N(0, α²)    W_k ~ N(u_k, 1)    b_k ~ N(u_k, 1)  its model, 60 × 10
    B_k ~ N(0, β²)    v_k ~ N(B_k, 1)                     the mean of its inputs
    x   ~ N(v_k, diag(j^−1.2))           y = argmax(x · W_k + b_k)

α sets how much the models differ, β how much the inputs do. There is no label noise.
"""

from collections.abc import Sequence

import numpy as np

from asyncfeded.data.federated import Examples, FederatedData, held_out
from asyncfeded.on_demand import ClientNames, OnDemand

FEATURES = 60
CLASSES = 10
DEVIATIONS = np.arange(1, FEATURES + 1) ** -0.6
"""Of the inputs: their variances are j^−1.2."""


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

    `num_examples` sets the sizes instead of drawing them, `max_examples` caps the drawn ones.
    Clients have seeds of their own: those of a smaller federation are the first of a larger one.
    A client's examples are made when they are asked for, each time anew.
    """
    if alpha < 0 or beta < 0:
        raise ValueError(f"alpha and beta must be at least 0; given {alpha} and {beta}")
    if clients < 1:
        raise ValueError(f"clients must be at least 1; given {clients}")
    if not 0 < test_share < 1:
        raise ValueError(f"test_share must be above 0 and below 1; given {test_share}")
    if num_examples is not None and len(num_examples) != clients:
        raise ValueError(f"num_examples must have {clients} sizes; given {len(num_examples)}")
    if min(num_examples or (2,)) < 2 or (max_examples is not None and max_examples < 2):
        raise ValueError("a client needs at least 2 examples, one to train and one to test")
    names = ClientNames(clients)

    def size_of(index: int, draw: np.random.Generator) -> int:
        drawn = int(draw.lognormal(4.0, 2.0)) + 50
        if num_examples is not None:
            return num_examples[index]
        return drawn if max_examples is None else min(drawn, max_examples)

    def parts(name: str) -> tuple[Examples, Examples]:
        index = names.index(name)
        draw = np.random.default_rng([seed, index])
        size = size_of(index, draw)
        examples = _client_examples(draw, alpha, beta, size)
        tests = slice(held_out(size, test_share))
        trains = slice(held_out(size, test_share), None)
        return (
            Examples(examples.x[trains], examples.y[trains]),
            Examples(examples.x[tests], examples.y[tests]),
        )

    def train_size(name: str) -> int:
        index = names.index(name)
        size = size_of(index, np.random.default_rng([seed, index]))
        return size - held_out(size, test_share)

    return FederatedData(
        f"synthetic-{alpha:g}-{beta:g}",
        CLASSES,
        train=OnDemand(names, lambda name: parts(name)[0]),
        test=OnDemand(names, lambda name: parts(name)[1]),
        sizes=OnDemand(names, train_size),
    )


def _client_examples(draw: np.random.Generator, alpha: float, beta: float, size: int) -> Examples:
    model_mean = draw.normal(0.0, alpha)
    weights = draw.normal(model_mean, 1.0, (FEATURES, CLASSES))
    bias = draw.normal(model_mean, 1.0, CLASSES)
    input_mean = draw.normal(draw.normal(0.0, beta), 1.0, FEATURES)
    x = input_mean + DEVIATIONS * draw.standard_normal((size, FEATURES))
    y = np.argmax(x @ weights + bias, axis=1)
    return Examples(x.astype(np.float32), y.astype(np.int64))
