"""A module that is loaded when it is first used.

Compiled code takes most of a second to load. Who asks the command line for help needs none of it.
"""

from importlib import import_module
from typing import Any


class Late:
    """Stands for a module under a name of another module, and gives the place to it when loaded."""

    def __init__(self, module: str, user: dict[str, Any], name: str) -> None:
        self._module = module
        self._user = user
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        loaded = import_module(self._module)
        self._user[self._name] = loaded
        return getattr(loaded, attribute)
