"""What every data set looks like to the rest: arrays of examples and labels per client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError

TEST_SHARE = 0.1
"""The share of a client's examples that is held out for testing."""
DIGESTED_CLIENTS = 1000


@dataclass(frozen=True, slots=True)
class Examples:
    """Inputs and labels, one row each.

    With `per_epoch`, a pass visits only so many of them, drawn anew each time and spread over all;
    the length is how many a pass visits.
    """

    x: npt.NDArray[Any]
    y: npt.NDArray[np.int64]
    per_epoch: int | None = None

    def __len__(self) -> int:
        return len(self.y) if self.per_epoch is None else self.per_epoch

    def take(self, indices: npt.NDArray[np.int64]) -> "Examples":
        """Those at these places, in this order."""
        return Examples(self.x[indices], self.y[indices])


@dataclass(frozen=True, slots=True)
class FederatedData:
    """A data set in parts: the training and the test examples of every client.

    `sources` says whose data a client has, such as the name of a writer; generated data have none.
    Data that are made on demand know the `sizes` of their training parts beforehand.
    """

    name: str
    num_classes: int
    train: Mapping[str, Examples]
    test: Mapping[str, Examples]
    sources: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.sizes:
            sizes = {name: len(examples) for name, examples in self.train.items()}
            object.__setattr__(self, "sizes", sizes)

    @property
    def sha256(self) -> str:
        """A digest that two runs share only if they were given the same examples.

        Of very many clients, the examples of the first thousand stand for all.
        """
        digest = sha256()
        if len(self.train) > DIGESTED_CLIENTS:
            digest.update(f"{len(self.train)} clients\0".encode())
        for name in islice(self.train, DIGESTED_CLIENTS):
            train = self.train[name]
            digest.update(f"{name}\0{self.sources.get(name)}\0{train.per_epoch}\0".encode())
            for part in (train, self.test[name]):
                digest.update(np.ascontiguousarray(part.x).data)
                digest.update(np.ascontiguousarray(part.y).data)
        return digest.hexdigest()


def held_out(count: int, share: float = TEST_SHARE) -> int:
    """How many of so many examples are for testing: a tenth, and at least one."""
    return max(1, round(share * count))


def choose(what: str, sizes: Mapping[str, int], minimum: int, count: int, seed: int) -> list[str]:
    """Draw so many of those that have at least `minimum`; fewer are the first of more.

    `what` they are called is part of the draw's key.
    """
    eligible = sorted(name for name, size in sizes.items() if size >= minimum)
    if len(eligible) < count:
        raise SettingError(
            f"clients must be at most {len(eligible)}, the number of {what} with at least "
            f"{minimum} examples; given {count}: lower clients, lower min_examples or add data"
        )
    order = randomness.generator(seed, "choose", what).permutation(len(eligible))
    return [eligible[index] for index in order[:count]]


def largest_to_slowest(
    names: Sequence[str], sizes: Mapping[str, int], round_seconds: Sequence[float]
) -> list[str]:
    """Order names so that whose round takes longest has the most data, and so on down."""
    by_size = sorted(names, key=lambda name: (sizes[name], name))
    ordered = [""] * len(names)
    for name, place in zip(by_size, np.argsort(round_seconds, kind="stable"), strict=True):
        ordered[place] = name
    return ordered
