"""The hyperparameters of the registry's rules, as a command line or a file gives them.

They are read off the rules' factories (see `core/hyperparameters`), so that a new rule shows up on
the command line and in files without another line.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from asyncfeded.core.errors import SettingError
from asyncfeded.core.hyperparameters import Hyperparameter, hyperparameters_of
from asyncfeded.core.rule import AnyRule
from asyncfeded.rules import REGISTRY


def rule_names() -> list[str]:
    """The names of all rules."""
    return list(REGISTRY)


@cache
def hyperparameters(rule: str) -> Mapping[str, Hyperparameter]:
    """The hyperparameters of a rule of the registry, by name."""
    return hyperparameters_of(REGISTRY[rule])


def all_hyperparameters() -> dict[str, list[tuple[str, Hyperparameter]]]:
    """Every hyperparameter by name, with the rules that have it."""
    found: dict[str, list[tuple[str, Hyperparameter]]] = {}
    for rule in REGISTRY:
        for name, hyperparameter in hyperparameters(rule).items():
            found.setdefault(name, []).append((rule, hyperparameter))
    return found


def build_rule(rule: str, values: Mapping[str, object]) -> AnyRule:
    """Make a rule of the registry with these hyperparameters, its defaults for the rest."""
    known = hyperparameters(rule)
    return REGISTRY[rule](**{name: _read(known[name], value) for name, value in values.items()})


def _read(hyperparameter: Hyperparameter, value: object) -> Any:
    """Read a value that may come as text from a command line or a file."""
    if value == "none" and type(None) in get_args(hyperparameter.type):
        return None
    try:
        return TypeAdapter(hyperparameter.type).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].replace("Input should be", "must be")
        name, meaning = hyperparameter.name, hyperparameter.help
        raise SettingError(f"{name} {problem}; given {value!r} ({meaning})") from None
