"""Asynchronous federated learning on Flower: the data never leave their owners.

    import asyncfeded
    from asyncfeded import rules

    app = asyncfeded.flower.server_app(model, rule=rules.asyncfeded(), seconds=600)

Flower itself is loaded when one of these names is asked for.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from asyncfeded.core.errors import ClusterError
from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.flower.client import client_app
    from asyncfeded.flower.messages import Messages
    from asyncfeded.flower.server import serve, server_app

__all__ = [
    "Messages",
    "client_app",
    "serve",
    "server_app",
]

_get = later(
    __name__,
    {
        "Messages": "asyncfeded.flower.messages",
        "client_app": "asyncfeded.flower.client",
        "serve": "asyncfeded.flower.server",
        "server_app": "asyncfeded.flower.server",
    },
)


def __getattr__(name: str) -> Any:
    if name in __all__ and find_spec("flwr") is None:
        raise ClusterError(
            "flwr is not installed, which a federation needs: pip install 'asyncfeded[flower]'"
        )
    return _get(name)


def __dir__() -> list[str]:
    return __all__
