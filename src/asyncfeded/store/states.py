"""The parts of a run as trees of plain data, and back."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from asyncfeded.core.errors import StateError
from asyncfeded.core.state import ServerState
from asyncfeded.runtime.saved import Saved

_LEAVES = (int, float, str, bool, type(None), np.ndarray)


def tree_of(value: object) -> Any:
    """The same with a mapping of its fields in the place of every dataclass; nothing is copied."""
    if type(value) in _LEAVES:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: tree_of(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list):
        return [tree_of(item) for item in value]
    if type(value) is dict:
        return {key: tree_of(item) for key, item in value.items()}
    return value


def server_state(tree: Saved) -> ServerState:
    """A server's state from its tree, whatever the tree holds."""
    try:
        return _of_servers().validate_python(tree)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StateError(
            f"the saved state of the server is damaged: {place}: {first['msg']}"
        ) from None


@cache
def _of_servers() -> TypeAdapter[ServerState]:
    return TypeAdapter(ServerState)


NOT_DECISIVE = (
    *("workers", "workers_on", "ray_address", "address", "patience"),
    *("out", "data_dir", "checkpoint_every"),
)
"""Settings that a later process may have others of: how and where a run is carried out.

On the virtual clock they change no result. On Ray `patience` does: it decides which clients are
started again. So do the machines, and no run on Ray gives the same twice. Whoever goes on must be
free to give slow clients more time, as to name another cluster.
"""
LONGEST_TEXT = 200
VERSION = "package_version"


def identity_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same when a run goes on in another process, as plain data.

    Of long texts the digest is kept, and nothing of objects that cannot be told apart by a text.
    """
    kept = {}
    for name, value in settings.items():
        text = json.dumps(value, sort_keys=True, default=repr)
        if name not in NOT_DECISIVE and " at 0x" not in text:
            short = len(text) <= LONGEST_TEXT
            kept[name] = json.loads(text) if short else sha256(text.encode()).hexdigest()
    return kept


def check_same_run(saved: Saved, identity: Mapping[str, Any]) -> None:
    """Refuse to go on with a run under other settings than those that it was saved with."""
    was = saved.get("run")
    if not isinstance(was, dict):
        raise StateError("the saved state is damaged: it does not say of which run it is")
    then, now = was.get(VERSION), identity.get(VERSION)
    if then != now:
        raise StateError(
            f"the run was saved by asyncfeded {then!s:.20}, this is {now}: go on with the version "
            "that saved it, or begin anew elsewhere"
        )
    for name in sorted({*was, *identity}):
        if was.get(name) != identity.get(name):
            raise StateError(
                f"{name} must be {was.get(name)!r}, as in the saved run; given "
                f"{identity.get(name)!r}: go on with the same settings, or begin anew elsewhere"
            )
