"""Ways to deal an ordinary labelled data set out to clients.

Every function takes a label per example. It returns the places of every client's examples, in
rising order. Each example goes to exactly one client, and every client gets some.

    parts = partition.dirichlet(labels, clients=10, alpha=0.3, seed=0)
    datasets = {client: (x[places], y[places]) for client, places in parts.items()}
"""

from collections.abc import Mapping
from numbers import Number
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.on_demand import ClientNames
from asyncfeded.randomness import Places

Scheme = Literal["iid", "dirichlet", "shards", "column"]
"""How a labelled data set is dealt out, by name."""
Partition = dict[str, Places]

ATTEMPTS = 1000
MIN_EXAMPLES = 10
"""The fewest examples of a client of `dirichlet`. A client with a single example would finish its
rounds at once, and send most of all updates."""


def iid(labels: npt.ArrayLike, clients: int, seed: int = 0) -> Partition:
    """Deal shuffled examples out evenly: every client sees the same mixture."""
    count = len(_labels(labels, clients))
    order = randomness.generator(seed, "partition-iid").permutation(count)
    return _named(np.array_split(order, clients))


def dirichlet(
    labels: npt.ArrayLike,
    clients: int,
    alpha: float,
    seed: int = 0,
    min_examples: int | None = None,
) -> Partition:
    """Deal every class out in shares drawn from Dirichlet(α), after Hsu et al., arXiv:1909.06335.

    A small α gives every client few classes, a large α gives all clients the same mixture. Shares
    are drawn again until every client has `min_examples`. The default is 10, or half of an equal
    share where that is less.
    """
    found = _labels(labels, clients)
    require(np.isfinite(alpha) and alpha > 0, "alpha", "a finite number above 0", alpha)
    most = len(found) // clients
    if min_examples is None:
        min_examples = min(MIN_EXAMPLES, max(1, most // 2))
    require(1 <= min_examples <= most, "min_examples", f"from 1 to {most}", min_examples)
    draw = randomness.generator(seed, "partition-dirichlet")
    for _ in range(ATTEMPTS):
        parts: list[list[Places]] = [[] for _ in range(clients)]
        for label in np.unique(found):
            places = draw.permutation(np.flatnonzero(found == label))
            ends = np.cumsum(draw.dirichlet(np.full(clients, alpha)))[:-1] * len(places)
            for part, share in zip(parts, np.split(places, ends.astype(np.int64)), strict=True):
                part.append(share)
        joined = [np.concatenate(part) for part in parts]
        if min(len(part) for part in joined) >= min_examples:
            return _named(joined)
    raise SettingError(
        f"alpha {alpha:g} left some of {clients} clients with fewer than {min_examples} examples "
        f"in {ATTEMPTS} draws: raise alpha, or lower clients or min_examples"
    )


def shards(
    labels: npt.ArrayLike, clients: int, shards_per_client: int = 2, seed: int = 0
) -> Partition:
    """Sort by label, cut into equal shards, deal them out, after McMahan et al., arXiv:1602.05629.

    A client with two shards has about two classes.
    """
    found = _labels(labels, clients)
    most = len(found) // clients
    require(
        1 <= shards_per_client <= most, "shards_per_client", f"from 1 to {most}", shards_per_client
    )
    draw = randomness.generator(seed, "partition-shards")
    shuffled = draw.permutation(len(found))
    by_label = shuffled[np.argsort(found[shuffled], kind="stable")]
    pieces = np.array_split(by_label, clients * shards_per_client)
    order = draw.permutation(len(pieces)).reshape(clients, shards_per_client)
    return _named([np.concatenate([pieces[index] for index in row]) for row in order])


def by_column(column: npt.ArrayLike) -> Partition:
    """One client per value of a column, such as the writer, the hospital or the device.

    A row without a value (None, NaN, a blank text) is refused: it would belong to no client.
    """
    row = _first_without_value(column)
    if row is not None:
        raise SettingError(
            f"column must have a value in every row; row {row} (counted from 0) has none: leave "
            "such rows out, or give them a value of their own"
        )
    values = _one_per_example("column", column)
    require(len(values) > 0, "column", "one value per example", values)
    return {str(value): np.flatnonzero(values == value) for value in np.unique(values)}


def class_counts(labels: npt.ArrayLike, parts: Mapping[str, Places], num_classes: int) -> Any:
    """The number of examples of each class and client, as (clients, classes)."""
    found = np.asarray(labels, dtype=np.int64)
    return np.array([np.bincount(found[p], minlength=num_classes) for p in parts.values()])


def _labels(labels: npt.ArrayLike, clients: int) -> npt.NDArray[Any]:
    found = _one_per_example("labels", labels)
    require(1 <= clients <= len(found), "clients", f"from 1 to {len(found)} examples", clients)
    return found


def _one_per_example(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Values that can be compared and sorted: no NaN, no mixture of kinds."""
    found = np.asarray(values)
    if found.ndim != 1:
        raise SettingError(f"{name} must be one per example; given the shape {found.shape}")
    if found.dtype.kind == "O":
        kinds = (str, Number)
        if not any(all(isinstance(value, kind) for value in found) for kind in kinds):
            raise SettingError(f"{name} must be all numbers or all texts; given a mixture")
        found = np.array(found.tolist())
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise SettingError(f"{name} must be finite; given a NaN or an infinity")
    return found


def _first_without_value(column: npt.ArrayLike) -> int | None:
    """The first row that has no value; None if all have one."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        return next(iter(np.flatnonzero(np.ma.getmaskarray(column)).tolist()), None)
    # Row by row: NumPy would turn a NaN among texts into a text.
    rows: npt.NDArray[Any] = np.ma.filled(np.ma.asarray(column, dtype=object), None)
    return next((row for row, value in enumerate(rows.ravel()) if _is_missing(value)), None)


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return bool(value != value)  # NaN, and a time that is none
    except (TypeError, ValueError):  # pandas' NA
        return True


def _named(parts: list[Places]) -> Partition:
    return {name: np.sort(part) for name, part in zip(ClientNames(len(parts)), parts, strict=True)}
