"""What a rule's state may be made of: plain data, so that it can be saved without pickle."""

from collections.abc import Mapping

import numpy as np

from asyncfeded.core.errors import RuleError
from asyncfeded.core.persistent import PersistentMap

_MOST_SHOWN = 100


def misfit(begun: object, saved: object, place: str = "state") -> str | None:
    """Why a saved state cannot follow from the state that a rule begins with; None if it can.

    Names and kinds stay what they are; numbers, shapes and the keys of a `PersistentMap` change.
    """
    if begun is None or saved is None:
        return None
    kinds = _kind_of(begun), _kind_of(saved)
    if kinds[0] != kinds[1]:
        return f"its {place} is {kinds[1]}, where the rule has {kinds[0]}"
    if isinstance(begun, Mapping) and isinstance(saved, Mapping) and kinds[0] == "a mapping":
        if begun.keys() != saved.keys():
            return f"its {place} has {_names(saved)}, where the rule has {_names(begun)}"
        return next(
            filter(None, (misfit(begun[k], saved[k], f"{place}[{k!r}]") for k in begun)), None
        )
    return None


def _kind_of(value: object) -> str:
    match value:
        case PersistentMap():
            return "a map of clients"
        case Mapping():
            return "a mapping"
        case np.ndarray():
            return f"an array of {value.dtype}"
        case str():
            return "a text"
    return "a number"


def _names(mapping: Mapping[str, object]) -> str:
    return ", ".join(sorted(mapping))[:_MOST_SHOWN] or "nothing"


def check_tree(rule: str, tree: object, place: str = "state") -> None:
    """Refuse a state that holds anything but arrays, numbers, texts, None and mappings of these."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return
    if isinstance(tree, np.ndarray) and tree.dtype.kind in "biuf":
        return
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            if not isinstance(key, str):
                raise RuleError(
                    f"rule {rule!r}: a key of its {place} must be a text; given {key!r}"
                )
            check_tree(rule, value, f"{place}[{key!r}]")
        return
    raise RuleError(
        f"rule {rule!r}: its {place} must be an array of numbers, a number, a text, None or a "
        f"mapping of these; given {type(tree).__name__}"
    )
