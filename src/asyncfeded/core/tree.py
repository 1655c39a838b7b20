"""What a rule's state may be made of: plain data, so that it can be saved without pickle."""

from collections.abc import Mapping

import numpy as np

from asyncfeded.core.errors import RuleError


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
