"""What a sweep searches: hyperparameters of a rule, as ranges or as lists of values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.hyperparameters import known_hyperparameters, read_value

FORMS = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=VALUE,VALUE,…"


@dataclass(frozen=True, slots=True)
class Choices:
    """One of these values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A number from low to high, both included; whole if both are, even on a log scale if `log`."""

    low: float
    high: float
    log: bool


Space = Mapping[str, Choices | Range]
"""What to search, by the hyperparameter's name."""


def read_space(rule: str, texts: Sequence[str]) -> Space:
    """Read entries such as `lam=0.1:10:log` and `kappa=0,0.5,1`."""
    space: dict[str, Choices | Range] = {}
    for text in texts:
        name, equals, given = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not given:
            raise SettingError(f"search must be {FORMS}; given {text!r}")
        known = known_hyperparameters(rule)
        if name not in known:
            raise SettingError(
                f"search must name a hyperparameter of {rule}: {', '.join(known)}; given {name!r}"
            )
        if name in space:
            raise SettingError(f"search must name every hyperparameter once; given {name!r} twice")
        space[name] = _read_range(rule, name, text) if ":" in given else _read(rule, name, text)
    if not space:
        raise SettingError(f"search must be given at least once, as {FORMS}")
    return space


def grid_of(space: Space) -> list[dict[str, Any]]:
    """All combinations of the values; a range has none."""
    values = []
    for name, choices in space.items():
        if isinstance(choices, Range):
            raise SettingError(
                f"search must list values for the sampler grid, such as {name}="
                f"{choices.low:g},{choices.high:g}; given a range for {name!r}"
            )
        values.append(choices.values)
    return [dict(zip(space, point, strict=True)) for point in product(*values)]


def _read_range(rule: str, name: str, text: str) -> Range:
    parts = text.partition("=")[2].split(":")
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["log"]):
        raise SettingError(f"search must be {FORMS}; given {text!r}")
    low, high = (read_value(rule, name, part.strip()) for part in parts[:2])
    log = len(parts) == 3
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high)):
        raise SettingError(f"search must list the values of {name}, no numbers; given {text!r}")
    if not low < high or (log and low <= 0):
        limit = "0 < LOW < HIGH" if log else "LOW < HIGH"
        raise SettingError(f"search must have {limit}; given {text!r}")
    return Range(low, high, log)


def _read(rule: str, name: str, text: str) -> Choices:
    parts = text.partition("=")[2].split(",")
    values = tuple(read_value(rule, name, part.strip()) for part in parts)
    if len(set(values)) < len(values):
        raise SettingError(f"search must list every value once; given {text!r}")
    return Choices(values)
