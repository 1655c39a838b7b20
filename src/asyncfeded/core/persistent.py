"""A mapping that is a value: setting a key makes a new mapping and leaves the old as it was.

A rule that keeps a vector per client would copy a dict of all clients for every update. Here the
newest mapping owns one dict, and each older mapping holds the one entry in which it differs from
the next newer one. Setting a key takes the same time for any number of keys. Reading an older
mapping moves the dict back to it first, entry by entry (Henry Baker: Shallow Binding Makes
Functional Arrays Fast, 1991).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

_ABSENT: Final[Any] = object()


class PersistentMap(Mapping[str, Value]):
    """A mapping from texts that never changes; keys come in alphabetical order."""

    __slots__ = ("_entries", "_key", "_newer", "_old_value")

    def __init__(self, entries: Mapping[str, Value] | None = None) -> None:
        self._entries: dict[str, Value] | None = {} if entries is None else dict(entries)
        self._newer: PersistentMap[Value] | None = None
        self._key = ""
        self._old_value: Any = _ABSENT

    def set(self, key: str, value: Value) -> "PersistentMap[Value]":
        """Return the mapping with this entry."""
        return self._with(key, value)

    def without(self, key: str) -> "PersistentMap[Value]":
        """Return the mapping without this entry, whether or not it is there."""
        return self._with(key, _ABSENT)

    def __getitem__(self, key: str) -> Value:
        return self._own_entries()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._own_entries()))

    def __len__(self) -> int:
        return len(self._own_entries())

    def __reduce__(self) -> tuple[type["PersistentMap[Value]"], tuple[dict[str, Value]]]:
        return PersistentMap, (dict(self),)

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)!r})"

    def _with(self, key: str, value: Any) -> "PersistentMap[Value]":
        newer = PersistentMap[Value]()
        newer._entries = self._own_entries()
        self._give_way_to(newer, key, value)
        return newer

    def _own_entries(self) -> dict[str, Value]:
        """Bring the dict here from the mapping that owns it now."""
        path: list[PersistentMap[Value]] = []
        owner = self
        while owner._newer is not None:
            path.append(owner)
            owner = owner._newer
        for older in reversed(path):
            key, value = older._key, older._old_value
            older._entries, older._newer = owner._entries, None
            owner._give_way_to(older, key, value)
            owner = older
        assert self._entries is not None
        return self._entries

    def _give_way_to(self, owner: "PersistentMap[Value]", key: str, value: Any) -> None:
        """Change the entry in the dict that `owner` has now, and keep its old value here."""
        entries = owner._entries
        assert entries is not None
        self._key, self._old_value = key, entries.get(key, _ABSENT)
        self._newer, self._entries = owner, None
        if value is _ABSENT:
            entries.pop(key, None)
        else:
            entries[key] = value
