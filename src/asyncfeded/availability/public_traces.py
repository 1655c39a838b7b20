"""Public traces of devices: when their users' machines could have trained.

`Availability.from_json` says which forms are known, and when a user counts as available.
"""

from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from asyncfeded.availability.periods import LEAST_CYCLE_SECONDS, RecordedPeriods
from asyncfeded.availability.reading import number, reading
from asyncfeded.core.errors import FileError
from asyncfeded.reading import parse_json, read_bytes

MOST_BYTES = 1 << 30
"""A file is read at once, and takes several times its size."""

LOCKED, CHARGING, WIFI = "locked", "charging", "wifi"
STATES: dict[str, tuple[str, bool]] = {
    "screen_lock": (LOCKED, True),
    "screen_unlock": (LOCKED, False),
    "battery_charged_on": (CHARGING, True),
    "battery_charged_off": (CHARGING, False),
    "wifi": (WIFI, True),
    **dict.fromkeys(("2g", "3g", "4g", "5g", "unknown"), (WIFI, False)),
}
"""What a state of FLASH's says; a user is available while all three hold."""
OTHER_STATES = ("screen_on", "screen_off")


class Recording(NamedTuple):
    """What was recorded of a user, in seconds from the same zero for all users of a file."""

    begins: float
    ends: float
    periods: list[tuple[float, float]]


class TraceError(Exception):
    """What is wrong with the record of a user."""


def read_json(path: Path) -> tuple[dict[str, RecordedPeriods], dict[str, str]]:
    """Read a public trace: the users' periods, and of some users why they have none."""
    with reading(path):
        users: object = parse_json(read_bytes(path, MOST_BYTES))
    if not isinstance(users, dict) or not users:
        raise FileError(
            f"{str(path)!r} must be a mapping with at least one user; given {users!r:.40}"
        )
    records: dict[str, Recording] = {}
    faults: dict[str, str] = {}
    for user in users:
        try:
            records[user] = _record(users[user])
        except TraceError as fault:
            faults[user] = f"{str(path)!r}, user {user!r:.80}: {fault}"
        users[user] = None  # the text of a trace is much larger than its periods
    if not records:
        raise FileError(next(iter(faults.values())))
    zero = min(record.begins for record in records.values())
    return {user: _repeated(record, zero) for user, record in records.items()}, faults


def _repeated(record: Recording, zero: float) -> RecordedPeriods:
    """The trace again and again, before and after the time of its recording."""
    cycle = record.ends - record.begins
    return RecordedPeriods([(s - zero, e - zero) for s, e in record.periods], cycle)


def _record(record: object) -> Recording:
    """Read the record of a user, of whatever form it is."""
    if not isinstance(record, dict):
        raise TraceError(f"must be a mapping; given {record!r:.40}")
    if "messages" in record:
        return _checked(_of_messages(record["messages"]))
    if "ready_time" in record:
        begins, ends = number(record.get("trace_start")), number(record.get("trace_end"))
        return _checked(Recording(begins, ends, _pairs(record["ready_time"], "ready_time")))
    if "active" in record and "inactive" in record:
        starts, ends = record["active"], record["inactive"]
        if not (isinstance(starts, list) and isinstance(ends, list) and len(starts) == len(ends)):
            raise TraceError("active and inactive must be lists of the same length")
        pairs = [list(pair) for pair in zip(starts, ends, strict=True)]
        finish = number(record.get("finish_time"))
        return _checked(Recording(0.0, finish, _pairs(pairs, "active and inactive")))
    has = ", ".join(f"{name!r:.40}" for name in list(record)[:10]) or "nothing"
    raise TraceError(f"must have messages, ready_time, or active and inactive; it has {has}")


def _pairs(value: Any, name: str) -> list[tuple[float, float]]:
    right = isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value)
    if not right:
        raise TraceError(f"{name} must be a list of pairs [start, end]")
    return [(number(start), number(end)) for start, end in value]


def _of_messages(messages: object) -> Recording:
    """Lines of a time and a state, which holds until another of its kind."""
    if not isinstance(messages, str):
        raise TraceError(f"messages must be a text; given {messages!r:.40}")
    lines = enumerate(messages.split("\n"), start=1)
    # Times of this form are in order as texts are.
    events = sorted(_event(place, line) for place, line in lines if line.strip())
    if not events:
        raise TraceError("messages must have lines; given none")
    holds = dict.fromkeys((LOCKED, CHARGING, WIFI), False)
    periods = []
    since = None
    for stamp, place, state in events:
        if state not in STATES:
            continue
        what, value = STATES[state]
        holds[what] = value
        available = all(holds.values())
        if available and since is None:
            since = _seconds(stamp, place)
        elif since is not None and not available:
            periods.append((since, _seconds(stamp, place)))
            since = None
    begins, ends = (_seconds(stamp, place) for stamp, place, _ in (events[0], events[-1]))
    if since is not None:
        periods.append((since, ends))
    return Recording(begins, ends, periods)


def _event(place: int, line: str) -> tuple[str, int, str]:
    stamp, _, state = line.strip().partition("\t")
    state = state.strip().lower()
    if not (state in STATES or state in OTHER_STATES or isfinite(number(state.rstrip("%")))):
        raise TraceError(
            f"line {place} of its messages must be a time, a tab and one of "
            f"{', '.join((*STATES, *OTHER_STATES))} or a level in %; given {line[:80]!r}"
        )
    return stamp.strip(), place, state


def _seconds(stamp: str, place: int) -> float:
    try:
        return (datetime.fromisoformat(stamp) - datetime.min).total_seconds()
    except (TypeError, ValueError):
        raise TraceError(
            f"line {place} of its messages must begin with a time such as 2020-01-28 10:15:00; "
            f"given {stamp[:40]!r}"
        ) from None


def _checked(record: Recording) -> Recording:
    begins, ends, periods = record
    if not (isfinite(begins) and isfinite(ends) and ends - begins >= LEAST_CYCLE_SECONDS):
        raise TraceError(
            f"must last at least {LEAST_CYCLE_SECONDS:g} s; given {begins:g} to {ends:g}"
        )
    for start, end in periods:
        if not begins <= start <= end <= ends:  # nor NaN
            raise TraceError(
                f"must have periods from {begins:g} to {ends:g}, the times of the whole trace; "
                f"given {start:g} to {end:g}"
            )
    return record
