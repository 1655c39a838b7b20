"""Rules and tasks from outside the package: by their place, or by an entry point.

A place is FILE.py:factory or package.module:factory. An installed package may instead name a
factory in its entry points, in the group `asyncfeded.rules` or `asyncfeded.tasks`.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from asyncfeded.core.errors import FileError, SettingError

Kind = Literal["rule", "task"]


def names(kind: Kind) -> list[str]:
    """The names that installed packages add; nothing of theirs is loaded."""
    return sorted(entry_points(group=f"asyncfeded.{kind}s").names)


def is_place(name: str) -> bool:
    """Whether a name says where its factory is."""
    return ":" in name


def is_own(kind: Kind, name: str) -> bool:
    """Whether a rule or task is from outside the package."""
    return is_place(name) or name in names(kind)


def file_of(name: str) -> Path | None:
    """The file of a place such as FILE.py:factory; None of anything else."""
    where, _, _ = name.rpartition(":")
    return Path(where) if where.endswith(".py") else None


def check_file(kind: Kind, name: str) -> None:
    """Refuse a place whose file is not there; nothing is imported."""
    path = file_of(name)
    if path is not None and not path.is_file():
        raise FileError(f"{kind} {name!r}: there is no file {str(path)!r}")


def short_name(name: str) -> str:
    """A name for tables and folders: a place without the folder of its file."""
    where, colon, factory = name.rpartition(":")
    return f"{Path(where).name}{colon}{factory}" if is_place(name) else name


@cache
def load_factory(kind: Kind, name: str) -> Callable[..., Any] | None:
    """The factory at a place, or of an entry point; None if there is none of this name."""
    if is_place(name):
        return _at_place(kind, name)
    found = tuple(entry_points(group=f"asyncfeded.{kind}s", name=name))
    if not found:
        return None
    try:
        factory = found[0].load()
    except Exception as error:
        raise _unusable(kind, f"{name} ({found[0].value})", error) from error
    return _checked(kind, name, factory)


def _at_place(kind: Kind, place: str) -> Callable[..., Any]:
    where, _, name = place.rpartition(":")
    if not (where and name.isidentifier()):
        raise SettingError(
            f"{kind} must be FILE.py:factory or package.module:factory; given {place!r}"
        )
    module = _file(kind, place, Path(where)) if where.endswith(".py") else _module(kind, where)
    if not hasattr(module, name):
        raise SettingError(f"{kind} {place!r}: {where} has no {name!r}")
    return _checked(kind, place, getattr(module, name))


def _file(kind: Kind, place: str, path: Path) -> ModuleType:
    """Import a file as a module of its name, so that other processes can import it too."""
    check_file(kind, place)
    path = path.resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = _module(kind, path.stem)
    if Path(str(module.__file__)).resolve() != path:
        raise SettingError(
            f"{kind} {place!r}: a module {path.stem!r} is there already, {module.__file__}: "
            "give the file another name"
        )
    return module


def _module(kind: Kind, name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name or name.startswith(f"{error.name}."):
            raise SettingError(f"{kind}: there is no module {name!r}") from None
        raise _unusable(kind, name, error) from error
    except Exception as error:
        raise _unusable(kind, name, error) from error


def _checked(kind: Kind, name: str, factory: Any) -> Callable[..., Any]:
    if not callable(factory):
        raise SettingError(
            f"{kind} {name!r} must be a function; it is of type {type(factory).__name__}"
        )
    given: Callable[..., Any] = factory
    return given


def _unusable(kind: Kind, name: str, error: Exception) -> SettingError:
    return SettingError(f"{kind} {name!r} cannot be loaded: {type(error).__name__}: {error}")
