"""What is loaded when it is first used: names of a package, and modules.

torch and compiled code take seconds to load. Who asks the command line for help needs none of it.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def later(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are imported from these modules when asked for.

    A name that is given as its own module, such as "rules": "asyncfeded.rules", is that module.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(names[name])
        is_module = names[name].endswith(f".{name}") and not hasattr(module, name)
        found = module if is_module else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return found

    return get


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
