"""Signals of clients as bytes, and back: what a journal is made of.

A client may send anything. Before an update is written down, whatever the server would refuse
takes a plain form that is refused for the same reason; server and journal see the same update.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from asyncfeded.core.errors import StateError
from asyncfeded.core.messages import NO_FIGURES, ClientUpdate
from asyncfeded.core.validation import LARGEST_COUNT, are_counts, content_fault, fits_a_float
from asyncfeded.core.vectors import FLOAT32
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing, Quiet, Signal
from asyncfeded.store.codec import decode, encode_in_pieces

NO_NUMBER: Any = "?"
"""Stands for what a client has sent in the place of a number."""
NO_DELTA = np.empty(0, np.float64)
"""Stands for what is no vector of float32."""
WRONG_LENGTH = np.empty(0, np.float32)


def plain_update(update: ClientUpdate, size: int) -> ClientUpdate:
    """The same update for a model of `size` elements, with nothing in it but plain data."""
    return ClientUpdate(
        client_id=update.client_id if isinstance(update.client_id, str) else "",
        version=_count(update.version),
        delta=_delta(update.delta, size),
        num_examples=_count(update.num_examples),
        epochs=_count(update.epochs),
        round=None if update.round is None else _count(update.round),
        steps=None if update.steps is None else _count(update.steps),
        figures=_figures(update),
    )


def encoded(signal: Signal) -> bytes:
    """A signal as bytes; an update must be plain."""
    return b"".join(encoded_in_pieces(signal))


def encoded_in_pieces(signal: Signal) -> list[bytes | memoryview]:
    """The same bytes as pieces, one of which is the update's delta itself."""
    match signal:
        case Arriving(seconds, update, held_seconds):
            fields = {name: getattr(update, name) for name in _FIELDS}
            plain = {**fields, "figures": dict(update.figures)}
            held = None if held_seconds is None else float(held_seconds)
            return encode_in_pieces(["arriving", float(seconds), plain, held])
        case Joining(seconds, client_id):
            return encode_in_pieces(["joining", float(seconds), client_id])
        case Losing(seconds, client_id, number, reason):
            return encode_in_pieces(["losing", float(seconds), client_id, number, reason])
        case Leaving(seconds, client_id, reason, lost_round):
            return encode_in_pieces(["leaving", float(seconds), client_id, reason, lost_round])
        case Quiet():
            pass
    raise AssertionError(signal)


def decoded(content: bytes) -> Signal:
    """The signal that was encoded as these bytes."""
    match decode(content):
        case ["arriving", float(seconds), dict(fields), None | float() as held]:
            if fields.keys() == {*_FIELDS, "figures"}:
                update = ClientUpdate(**fields)
                if _is_plain(update) and _are_times(seconds, 0.0 if held is None else held):
                    return Arriving(seconds, update, held)
        case ["joining", float(seconds), str(client_id)] if _are_times(seconds):
            return Joining(seconds, client_id)
        case ["losing", float(seconds), str(client_id), int(number), str(reason)]:
            if _are_times(seconds) and are_counts(number):
                return Losing(seconds, client_id, number, reason)
        case ["leaving", float(seconds), str(client_id), None | str() as reason, None | int() as n]:
            if _are_times(seconds) and are_counts(0 if n is None else n):
                return Leaving(seconds, client_id, reason, n)
        case _:
            pass
    raise StateError("the journal is damaged: a record is no signal of a client")


_FIELDS = ("client_id", "version", "delta", "num_examples", "epochs", "round", "steps")


def _is_plain(update: ClientUpdate) -> bool:
    """Whether an update is as `plain_update` makes it."""
    delta, figures = update.delta, update.figures
    optional = (n for n in (update.round, update.steps) if n is not None)
    counts = (update.version, update.num_examples, update.epochs, *optional)
    return (
        isinstance(update.client_id, str)
        and isinstance(delta, np.ndarray)
        and delta.ndim == 1
        and (delta.dtype == FLOAT32 or delta.size == 0)
        and all(_is_the_same(count, _count(count)) for count in counts)
        and type(figures) is dict
        and all(
            type(value) is float or _is_the_same(value, NO_NUMBER) for value in figures.values()
        )
    )


def _is_the_same(given: object, plain: object) -> bool:
    return type(given) is type(plain) and given == plain


def _are_times(*seconds: float) -> bool:
    return all(map(isfinite, seconds))


def _count(value: Any) -> Any:
    """A whole number, cut to what the log can show; anything else is no number."""
    if not are_counts(value):
        return NO_NUMBER
    return max(-LARGEST_COUNT - 1, min(LARGEST_COUNT + 1, int(value)))


def _delta(delta: Any, size: int) -> Any:
    if type(delta) is not np.ndarray or delta.dtype != FLOAT32 or delta.ndim != 1:
        return NO_DELTA
    return delta if delta.size == size else WRONG_LENGTH


def _figures(update: ClientUpdate) -> Mapping[str, Any]:
    """The client's figures as floats; of those that the server refuses, one that it refuses."""
    figures = update.figures
    if isinstance(figures, Mapping) and not figures:
        return NO_FIGURES
    one = ClientUpdate("", 1, np.zeros(1, np.float32), 1, 1, figures=figures)
    if content_fault(one, 1) is not None or not all(map(fits_a_float, figures.values())):
        return {"": NO_NUMBER}
    return {name: float(value) for name, value in figures.items()}
