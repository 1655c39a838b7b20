"""The common form of all data sets: arrays of examples and labels per client."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.randomness import Places

TEST_SHARE = 0.1
"""The share of a client's examples that is held out for testing."""
DIGESTED_CLIENTS = 1000


@dataclass(frozen=True, slots=True)
class Examples:
    """Inputs and labels, one row each.

    With `per_epoch`, a pass visits only this many of them, drawn anew each time and spread over
    all; the length is then the number that a pass visits.
    """

    x: npt.NDArray[Any]
    y: npt.NDArray[np.int64]
    per_epoch: int | None = None

    def __len__(self) -> int:
        return len(self.y) if self.per_epoch is None else self.per_epoch

    def take(self, indices: npt.NDArray[np.int64]) -> "Examples":
        """The examples at these places, in this order."""
        return Examples(self.x[indices], self.y[indices])


@dataclass(frozen=True, slots=True)
class FederatedData:
    """A data set in parts: the training and the test examples of every client.

    `sources` says whose data a client has, such as the name of a writer; generated data have none.
    `sizes` has the sizes of the training parts; data that are made on demand must give them.
    Without `class_names`, classes are shown by their numbers.
    """

    name: str
    num_classes: int
    train: Mapping[str, Examples]
    test: Mapping[str, Examples]
    sources: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    class_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.sizes:
            sizes = {name: len(examples) for name, examples in self.train.items()}
            object.__setattr__(self, "sizes", sizes)
        if not self.class_names:
            numbers = [str(number) for number in range(self.num_classes)]
            object.__setattr__(self, "class_names", numbers)

    @property
    def sha256(self) -> str:
        """A digest of the examples, and of whose they are.

        Of more than a thousand clients, it has their number and the first thousand.
        """
        digest = sha256()
        if len(self.train) > DIGESTED_CLIENTS:
            digest.update(f"{len(self.train)} clients\0".encode())
        for name in islice(self.train, DIGESTED_CLIENTS):
            train = self.train[name]
            digest.update(f"{name}\0{self.sources.get(name)}\0{train.per_epoch}\0".encode())
            for part in (train, self.test.get(name)):
                _add_examples(digest, part)
        if not any(name in self.train for name in islice(self.test, 1)):
            for part in self.test.values():  # a test set of no single client
                _add_examples(digest, part)
        return digest.hexdigest()


def _add_examples(digest: "hashlib._Hash", part: Examples | None) -> None:
    if part is not None:
        digest.update(np.ascontiguousarray(part.x).data)
        digest.update(np.ascontiguousarray(part.y).data)


def held_out(count: int, share: float = TEST_SHARE) -> int:
    """The number of examples for testing among `count`: a tenth, and at least one."""
    return max(1, round(share * count))


def choose(what: str, sizes: Mapping[str, int], minimum: int, count: int, seed: int) -> list[str]:
    """Draw `count` names with at least `minimum`; a smaller draw is a prefix of a larger one.

    `what` says what is drawn; it is part of the draw's key.
    """
    eligible = sorted(name for name, size in sizes.items() if size >= minimum)
    if len(eligible) < count:
        raise SettingError(
            f"clients must be at most {len(eligible)}, the number of {what} with at least "
            f"{minimum} examples; given {count}: lower clients, lower min_examples or add data"
        )
    order = randomness.generator(seed, "choose", what).permutation(len(eligible))
    return [eligible[index] for index in order[:count]]


def nearest(
    what: str, sizes: Mapping[str, int], minimum: int, wanted: Sequence[int], seed: int
) -> list[str]:
    """Choose a different name for every wanted size, with the smallest sum of differences.

    All chosen names have at least `minimum`; the seed decides between names of equal size.
    """
    from scipy.optimize import linear_sum_assignment

    eligible = sum(size >= minimum for size in sizes.values())
    names = choose(what, sizes, minimum, max(eligible, len(wanted)), seed)
    differences = [[abs(sizes[name] - size) for name in names] for size in wanted]
    return [names[place] for place in linear_sum_assignment(differences)[1]]


def tenths(sizes: Sequence[int]) -> list[int]:
    """The number of each client's examples for testing: a tenth of all, and at least one each.

    Every client gets its tenth, rounded down. The largest fractions get the rest.
    """
    counts = [size // 10 for size in sizes]
    missing = round(TEST_SHARE * sum(sizes)) - sum(counts)
    by_fraction = sorted(range(len(sizes)), key=lambda place: -(sizes[place] % 10))
    for place in by_fraction[:missing]:
        counts[place] += 1
    return [max(1, count) for count in counts]


def random_sides(count: int, tests: int, draw: np.random.Generator) -> tuple[Places, Places]:
    """Split the places 0 to count − 1 at random: places to train on and to test on, in order."""
    order = draw.permutation(count)
    return np.sort(order[tests:]), np.sort(order[:tests])
