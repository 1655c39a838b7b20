"""What a run leaves on disk."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncfeded.files import write_table, write_text
    from asyncfeded.store.runs import RunStore, key_of

__all__ = [
    "RunStore",
    "key_of",
    "write_table",
    "write_text",
]

_LATER = {
    "RunStore": "asyncfeded.store.runs",
    "key_of": "asyncfeded.store.runs",
    "write_table": "asyncfeded.files",
    "write_text": "asyncfeded.files",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
