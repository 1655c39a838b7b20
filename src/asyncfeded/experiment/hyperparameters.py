"""The hyperparameters of the registry's rules, as a command line or a file gives them.

They are read off the rules' factories (see `core/hyperparameters`), so that a new rule shows up on
the command line and in files without another line.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from asyncfeded import own_code
from asyncfeded.core.errors import AsyncFedEDError, SettingError
from asyncfeded.core.hyperparameters import Hyperparameter, hyperparameters_of
from asyncfeded.core.rule import AnyRule, Rule
from asyncfeded.rules import REGISTRY

Owners = dict[str, list[tuple[str, Hyperparameter]]]
"""Every hyperparameter by name, with the rules that have it."""


def rule_names() -> list[str]:
    """The names of all rules, those of other packages last."""
    return [*REGISTRY, *own_code.names("rule")]


def factory_of(rule: object) -> Callable[..., AnyRule]:
    """What makes a rule: of the registry, of another package, or at a place of the user's."""
    if isinstance(rule, str):
        factory = REGISTRY.get(rule) or own_code.load_factory("rule", rule)
        if factory is not None:
            return factory
    raise SettingError(unknown("rule", rule, rule_names()))


@cache
def known_hyperparameters(rule: str) -> Mapping[str, Hyperparameter]:
    """The hyperparameters of a rule, by name."""
    factory = factory_of(rule)
    try:
        return hyperparameters_of(factory)
    except (NameError, TypeError, ValueError) as error:
        raise SettingError(f"rule {rule!r}: its arguments cannot be read: {error}") from None


def all_hyperparameters(more: Iterable[str] = ()) -> Owners:
    """Those of the registry's rules, and of more rules."""
    found: Owners = {}
    for rule in dict.fromkeys([*REGISTRY, *more]):
        for name, hyperparameter in known_hyperparameters(rule).items():
            found.setdefault(name, []).append((rule, hyperparameter))
    return found


def build_rule(rule: str, values: Mapping[str, object]) -> AnyRule:
    """Make a rule with these hyperparameters, its defaults for the rest."""
    known = known_hyperparameters(rule)
    given = {name: _read(known[name], value) for name, value in values.items()}
    if rule in REGISTRY:
        return REGISTRY[rule](**given)
    try:
        made: object = factory_of(rule)(**given)
    except AsyncFedEDError:
        raise
    except Exception as error:
        text = f"rule {rule!r} cannot be made: {type(error).__name__}: {error}"
        raise SettingError(text) from error
    if not isinstance(made, Rule):
        raise SettingError(f"rule {rule!r} must return a Rule; it gave a {type(made).__name__}")
    return made


def read_value(rule: str, name: str, value: object) -> Any:
    """A hyperparameter's value as the rule gets it; refused if it is outside its limits."""
    hyperparameter = known_hyperparameters(rule)[name]
    return hyperparameter.checked(_read(hyperparameter, value))


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Say that there is no such name, and which is near to it."""
    known = list(known)
    close = get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known[:40])}"
    return f"unknown {kind} {name!r}: {hint}"


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
