"""The hyperparameters of a rule, each stated once: in the signature of the rule's factory.

    @hyperparameters
    def fedasync(alpha: Annotated[float, Gt(0), Le(1), "α, the weight of a client model"] = 0.1):

The signature has the type, the limits (of `annotated_types`), the default, and a text that becomes
the help on the command line. The decorator checks values and notes them in the rule's settings.
"""

import inspect
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from numbers import Integral, Real
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Gt, Le, Lt

from asyncfeded.core.errors import SettingError
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.validation import LARGEST_COUNT

Parameters = ParamSpec("Parameters")
Made = TypeVar("Made", bound=AnyRule)

InitialEpochs = Annotated[int, Ge(1), "K of the first round"]

Limit = Ge | Gt | Le | Lt


@dataclass(frozen=True, slots=True)
class Hyperparameter:
    """One hyperparameter: its type, its limits, its default and what it means."""

    name: str
    type: Any
    limits: tuple[Limit, ...]
    default: Any
    meaning: str

    @property
    def help(self) -> str:
        """The meaning, with the limits."""
        limits = _in_words(self.limits)
        return f"{self.meaning}; {limits}" if limits else self.meaning

    def checked(self, value: object) -> Any:
        """Return the value as a plain Python value, or raise an error that says what it must be."""
        kinds = get_args(self.type) if get_origin(self.type) in (Union, types.UnionType) else ()
        if value is None and type(None) in kinds:
            return None
        kind = next((kind for kind in kinds if kind is not type(None)), self.type)
        if kind is bool:
            if isinstance(value, bool):
                return value
            raise self._error("true or false", value)
        if get_origin(kind) is Literal:
            choices = get_args(kind)
            if isinstance(value, str) and value in choices:
                return value
            raise self._error(" or ".join(map(repr, choices)), value)
        number = _number(kind, value)
        limits = _in_words(self.limits)
        if number is None:
            sort = "a whole number" if kind is int else "a finite number"
            raise self._error(f"{sort} {limits}".rstrip(), value)
        if not all(_holds(limit, number) for limit in self.limits):
            raise self._error(limits, value)
        return number

    def _error(self, limit: str, value: object) -> SettingError:
        shown = (
            repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a huge number"
        )
        return SettingError(f"{self.name} must be {limit}; given {shown}")


def hyperparameters(factory: Callable[Parameters, Made]) -> Callable[Parameters, Made]:
    """Check the arguments of a rule's factory, and note them in the rule's settings.

    Every argument that is annotated with a text is a hyperparameter. The text becomes the help on
    the command line, the limits of `annotated_types` are checked.

    Examples:
        >>> from typing import Annotated
        >>> from annotated_types import Ge, Lt
        >>> from asyncfeded import Decision, Rule, Step, Work, hyperparameters
        >>> @hyperparameters
        ... def scaled(scale: Annotated[float, Ge(0), Lt(1), "of every update"] = 0.5):
        ...     def on_update(state, arrival):
        ...         return Decision(None, arrival.work, Step(scale, arrival.delta))
        ...
        ...     return Rule("scaled", Work(epochs=1), lambda parameters: None, on_update)
        >>> scaled(0.25).settings
        {'scale': 0.25}
        >>> scaled(2)
        Traceback (most recent call last):
        asyncfeded.core.errors.SettingError: scale must be at least 0 and below 1; given 2
    """
    signature = inspect.signature(factory)
    known = hyperparameters_of(factory)

    @wraps(factory)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Made:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, hyperparameter in known.items():
            given.arguments[name] = hyperparameter.checked(given.arguments[name])
        rule = factory(*given.args, **given.kwargs)
        return replace(rule, settings={name: given.arguments[name] for name in known})

    return checked


def hyperparameters_of(factory: Callable[..., AnyRule]) -> Mapping[str, Hyperparameter]:
    """Read the hyperparameters of a rule off its factory: the arguments annotated with a text."""
    found = {}
    hints = get_type_hints(factory, include_extras=True)
    for name, parameter in inspect.signature(factory).parameters.items():
        if get_origin(hints.get(name)) is Annotated:
            kind, *notes = get_args(hints[name])
            texts = [note for note in notes if isinstance(note, str)]
            limits = tuple(note for note in notes if isinstance(note, Limit))
            if texts:
                found[name] = Hyperparameter(name, kind, limits, parameter.default, texts[0])
    return found


def _number(kind: object, value: object) -> int | float | None:
    """The value as a Python number; None if it is of another kind, not finite or too large."""
    if isinstance(value, bool):
        return None
    if kind is int:
        whole = int(value) if isinstance(value, Integral) else None
        return whole if whole is not None and abs(whole) <= LARGEST_COUNT else None
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number that no float reaches
        return None
    return number if math.isfinite(number) else None


def _holds(limit: Limit, number: Any) -> bool:
    match limit:
        case Gt(bound):
            return bool(number > bound)
        case Ge(bound):
            return bool(number >= bound)
        case Lt(bound):
            return bool(number < bound)
        case Le(bound):
            return bool(number <= bound)


def _in_words(limits: tuple[Limit, ...]) -> str:
    return " and ".join(map(_words, limits))


def _words(limit: Any) -> str:
    match limit:
        case Gt(bound):
            return f"above {bound:g}"
        case Ge(bound):
            return f"at least {bound:g}"
        case Lt(bound):
            return f"below {bound:g}"
        case _:
            return f"at most {limit.le:g}"
