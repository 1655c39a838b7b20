"""The training and test examples of every client, from what a user gives."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.data.federated import held_out as number_held_out
from asyncfeded.learning.datasets import TensorExamples, as_examples
from asyncfeded.on_demand import ClientNames, OnDemand, each

WHOLE = "all clients"
"""The name of a test set that belongs to no single client."""
KEPT_DATASETS = 256
"""How many clients' data are kept in memory where they are made on demand."""


def examples_of_clients(
    datasets: Sequence[Any] | Mapping[str, Any], test: Any, seed: int
) -> tuple[dict[str, TensorExamples] | OnDemand[TensorExamples], dict[str, TensorExamples]]:
    """The training examples and the test examples of every client."""
    if not isinstance(datasets, Mapping):
        datasets = dict(zip(ClientNames(len(datasets)), datasets, strict=True))
    require(len(datasets) > 0, "datasets", "at least one data set", datasets)
    train = each(datasets, as_examples, KEPT_DATASETS)
    if isinstance(test, Mapping):
        for name in test:
            if name not in train:
                raise SettingError(f"test must name clients of datasets; {name!r} is none")
        return train, {name: as_examples(own) for name, own in test.items()}
    if test is not None:
        return train, {WHOLE: as_examples(test)}
    if not isinstance(train, dict):
        raise SettingError(
            "test must be given where the clients' data are made on demand, as by a mapping that "
            "is no dict; given none"
        )
    held_out = {}
    for name, examples in train.items():
        if len(examples) < 2:
            raise SettingError(
                f"client {name!r} must have at least 2 examples to hold one out; "
                f"given {len(examples)}: pass test=… instead"
            )
        # Not `random_sides`, which sorts: the order of the examples decides the mini-batches, and
        # so the logs of earlier runs.
        order = randomness.generator(seed, "test-split", name).permutation(len(examples))
        indices = torch.from_numpy(order)
        count = number_held_out(len(examples))
        held_out[name] = TensorExamples(examples.x[indices[:count]], examples.y[indices[:count]])
        train[name] = TensorExamples(examples.x[indices[count:]], examples.y[indices[count:]])
    return train, held_out
