"""Many clients without a list of them: names are counted, what they have is made when asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar, overload

Given = TypeVar("Given")
Value = TypeVar("Value")

PREFIX = "client-"
MOST_DIGITS = 18


class ClientNames(Sequence[str]):
    """The names client-0, client-1 and so on, of which none is stored."""

    def __init__(self, count: int) -> None:
        self._indices = range(count)

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [f"{PREFIX}{number}" for number in self._indices[index]]
        return f"{PREFIX}{self._indices[index]}"

    def __contains__(self, name: object) -> bool:
        return self._number(name) is not None

    def index(self, name: str, start: int = 0, stop: int | None = None) -> int:
        """The number of a client."""
        number = self._number(name)
        if number is None or number not in self._indices[start:stop]:
            raise ValueError(f"{name!r} is not one of {len(self)} clients")
        return number

    def _number(self, name: object) -> int | None:
        digits = name.removeprefix(PREFIX) if isinstance(name, str) else ""
        if not (digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS):
            return None
        number = int(digits)
        return number if number in self._indices and name == f"{PREFIX}{number}" else None


class OnDemand(Mapping[str, Value]):
    """Something for every name, made when it is asked for; the `keep` last used are kept.

    `make` must give the same for the same name each time. Several threads may call it at once: what
    it draws must come from a generator of its own, not from a global one.
    """

    def __init__(self, names: Sequence[str], make: Callable[[str], Value], keep: int = 0) -> None:
        self.names = names
        # To look for a name in a list takes as long as the list is.
        self._known = names if isinstance(names, ClientNames) else frozenset(names)
        self._given = names, make, keep
        self._make = lru_cache(maxsize=keep)(make) if keep else make

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return OnDemand, self._given  # to another process, without what is kept here

    def __getitem__(self, name: str) -> Value:
        if name not in self._known:
            raise KeyError(name)
        return self._make(name)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def each(
    mapping: Mapping[str, Given], make: Callable[[Given], Value], keep: int = 0
) -> dict[str, Value] | OnDemand[Value]:
    """Make something of what each has: of a dict at once, of another mapping when asked for."""
    if isinstance(mapping, dict):
        return {name: make(given) for name, given in mapping.items()}
    return OnDemand(names_of(mapping), lambda name: make(mapping[name]), keep)


def names_of(mapping: Mapping[str, object]) -> Sequence[str]:
    """The names in order, without a list of them where there is none."""
    return mapping.names if isinstance(mapping, OnDemand) else list(mapping)
