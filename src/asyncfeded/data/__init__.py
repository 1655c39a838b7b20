"""Data of many clients, as plain arrays."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncfeded.data.federated import FederatedData

__all__ = [
    "FederatedData",
]

_LATER = {
    "FederatedData": "asyncfeded.data.federated",
}
"""What is imported when it is first asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
