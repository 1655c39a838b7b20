"""Data of many clients, as plain arrays."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.data.federated import FederatedData

__all__ = [
    "FederatedData",
]

__getattr__ = later(
    __name__,
    {
        "FederatedData": "asyncfeded.data.federated",
    },
)
