"""The state of a server as data: all that it needs to go on with the same bits.

A state holds arrays, numbers, texts and nothing else, so that it can be written to a file. Its
arrays are the server's own, not copies: write the state before the server goes on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from asyncfeded.core.errors import StateError
from asyncfeded.core.vectors import FLOAT32, Vector, all_finite

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

NONE_YET = -1
"""Stands in a column for a number that a client does not have yet."""


class _HasArrays:
    """Tells pydantic, which checks a state that was read, to take arrays as they are."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "arbitrary_types_allowed": True,
        "extra": "forbid",
    }


@dataclass(frozen=True, slots=True, eq=False)
class VersionState(_HasArrays):
    """A stored version: whole, or what is kept of it beside its sketch."""

    number: int
    leases: int
    parameters: Vector | None
    sketch: Floats | None
    statistics: Vector | None


@dataclass(frozen=True, slots=True, eq=False)
class HistoryState(_HasArrays):
    """The stored versions, and how they are kept."""

    keep: str
    buckets: int
    versions: list[VersionState]


@dataclass(frozen=True, slots=True, eq=False)
class ClientsState(_HasArrays):
    """A row per client: first those that take part, then those that rest, then those that left.

    `task_version` is the base of the task that a client holds. `NONE_YET` stands for no task and
    for no update taken yet, whose norm is then NaN.
    """

    names: list[str]
    taking_part: int
    resting: int
    population: int | None
    epochs: Floats
    proximal_mu: Floats
    next_round: Counts
    task_version: Counts
    last_taken: Counts
    last_delta_norm: Floats


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsState(_HasArrays):
    """What clients have reported of the elements that are not trained since the last step."""

    weighted_sum: Floats | None
    weight: float
    latest: Vector | None


@dataclass(frozen=True, slots=True, eq=False)
class RuleMemory(_HasArrays):
    """The rule's state now and after the last step, and how many steps have failed since."""

    now: Any
    after_last_step: Any
    failed_steps: int


@dataclass(frozen=True, slots=True, eq=False)
class ServerState(_HasArrays):
    """Everything that a server knows; `rule` and `settings` say under which rule."""

    rule: str
    settings: dict[str, Any]
    size: int
    trained: int
    exact: int
    version: int
    accepted: int
    refused: dict[str, int]
    lost: dict[str, int]
    history: HistoryState
    clients: ClientsState
    statistics: StatisticsState | None
    memory: RuleMemory


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters as plain data; of anything else its text."""
    plain = bool | int | float | str | None
    return {k: v if isinstance(v, plain) else repr(v) for k, v in settings.items()}


def check(fits: bool, problem: str) -> None:
    """Refuse a state that contradicts itself."""
    if not fits:
        raise StateError(f"the saved state of the server is damaged: {problem}")


def check_vector(vector: Vector | None, size: int, name: str) -> None:
    """Refuse anything but a finite vector of float32 with this size."""
    if vector is None:
        return
    check(vector.dtype == FLOAT32, f"{name} is of type {vector.dtype}, not float32")
    check(vector.shape == (size,), f"{name} has shape {vector.shape}, not ({size},)")
    check(all_finite(vector), f"{name} has a NaN or an infinity")


def check_column(column: npt.NDArray[Any], kind: type, rows: int, name: str) -> None:
    """Refuse a column of another type or length."""
    check(column.dtype == kind, f"{name} is of type {column.dtype}")
    check(column.shape == (rows,), f"{name} has shape {column.shape}, not ({rows},)")


def own_vector(vector: Vector) -> Vector:
    """The same numbers in memory that can be written to and used again."""
    return vector if vector.flags.owndata and vector.flags.writeable else vector.copy()


def counts(column: Iterable[int | None]) -> Counts:
    """Whole numbers as a column."""
    return np.array([NONE_YET if n is None else n for n in column], dtype=np.int64)


def floats(column: Iterable[float | None]) -> Floats:
    """Numbers as a column; NaN for none."""
    return np.array([np.nan if x is None else x for x in column], dtype=np.float64)
