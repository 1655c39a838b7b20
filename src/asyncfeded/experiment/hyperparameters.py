"""The hyperparameters of the rules, read off their factories.

A factory's keyword arguments that are annotated with a text, and that stand in the settings of the
rule it makes, are its hyperparameters; the text is their help. So a new rule shows up on the
command line and in files without another line.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from asyncfeded.core.errors import SettingError
from asyncfeded.core.rule import AnyRule
from asyncfeded.rules import REGISTRY


@dataclass(frozen=True, slots=True)
class Hyperparameter:
    """One keyword argument of a rule's factory."""

    name: str
    type: Any
    default: Any
    help: str

    def parse(self, value: object) -> Any:
        """Read a value that may come as text from a command line or a file."""
        if value == "none" and type(None) in get_args(self.type):
            return None
        try:
            return TypeAdapter(self.type).validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"].replace("Input should be", "must be")
            raise SettingError(f"{self.name} {problem}; given {value!r} ({self.help})") from None


def rule_names() -> list[str]:
    """The names of all rules."""
    return list(REGISTRY)


@cache
def hyperparameters(rule: str) -> Mapping[str, Hyperparameter]:
    """The hyperparameters of a rule of the registry, by name."""
    factory = REGISTRY[rule]
    function = factory.func if isinstance(factory, partial) else factory
    hints = get_type_hints(function, include_extras=True)
    found = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        if get_origin(hints[name]) is Annotated and name in factory().settings:
            kind, text = get_args(hints[name])
            found[name] = Hyperparameter(name, kind, parameter.default, text)
    return found


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
    return REGISTRY[rule](**{name: known[name].parse(value) for name, value in values.items()})
