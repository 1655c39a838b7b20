"""Checks of the kind of an argument: each names the argument, its limit and what was given."""

from inspect import isclass
from numbers import Integral, Real

from asyncfeded.core.errors import SettingError, require


def require_kind(right: bool, name: str, limit: str, value: object) -> None:
    """Name the kind of a wrong value; a module or a data set itself would fill many lines."""
    if not right:
        if isclass(value):
            raise SettingError(f"{name} must be {limit}; given the class {value.__name__}")
        kind = type(value).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise SettingError(f"{name} must be {limit}; given {article} {kind}")


def require_number(name: str, value: object) -> None:
    """Refuse what is not a number."""
    require(isinstance(value, Real) and not isinstance(value, bool), name, "a number", value)


def require_whole(name: str, value: object) -> None:
    """Refuse what is not a whole number."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    require(whole, name, "a whole number", value)


def require_list(name: str, kind: type, limit: str, value: object) -> None:
    """Refuse what is not a list or tuple of one kind."""
    right = isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value)
    require_kind(right, name, limit, value)
