"""When clients are there: looked up, drawn by day and night, and read from files."""

import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfeded import Availability, ClientNames
from asyncfeded.availability import periods_csv, public_traces
from asyncfeded.availability.periods import RecordedPeriods
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.runtime.membership import Period

DAY = 86400.0


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, Period(1, 2)),  # away; the next period
        (1.0, Period(1, 2)),  # a start belongs to its period
        (1.5, Period(1, 2)),
        (2.0, Period(4, 9)),  # an end does not
        (8.0, Period(4, 9)),
        (9.0, None),
    ],
)
def test_the_period_around_a_time_or_the_next_one_is_found(
    seconds: float, expected: Period | None
) -> None:
    # Out of order, touching and overlapping: 4 to 6, 6 to 8 and 5 to 9 are one.
    periods = RecordedPeriods([(6, 8), (4, 6), (1, 2), (5, 9)])
    assert periods.upcoming(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, Period(-2, 3)),  # the night before the first day
        (3.0, Period(5, 6)),
        (6.0, Period(8, 13)),
        (11.0, Period(8, 13)),
        (996.0, Period(998, 1003)),
    ],
)
def test_repeated_periods_go_on_beyond_the_end_of_a_day(seconds: float, expected: Period) -> None:
    # Days of 10 s: from 5 to 6, and from 8 to 3 of the next day.
    found = RecordedPeriods([(5, 6), (8, 13)], 10.0).upcoming(seconds)
    assert found is not None
    assert found.end == expected.end
    assert max(found.start, seconds) == max(expected.start, seconds)


def test_a_client_may_be_there_always_or_never() -> None:
    whole_day = RecordedPeriods([(0, 6), (6, 10)], 10.0).upcoming(7.0)
    assert whole_day is not None
    assert (whole_day.start <= 7.0, whole_day.end) == (True, inf)
    assert RecordedPeriods([], 10.0).upcoming(7.0) is None


@given(
    st.lists(st.tuples(st.integers(0, 70), st.integers(1, 70)), max_size=6),
    st.floats(1.0, 80.0),
    st.floats(0, 1e9),
)
def test_time_goes_on_from_period_to_period(
    spans: list[tuple[int, int]], cycle: float, seconds: float
) -> None:
    periods = RecordedPeriods([(start / 7, (start + length) / 7) for start, length in spans], cycle)
    for _ in range(20):
        period = periods.upcoming(seconds)
        assert (period is None) == (not spans)
        if period is None or period.end == inf:
            return
        assert period.end > seconds
        seconds = period.end


def test_days_and_nights_have_their_share_and_never_overlap() -> None:
    available = Availability.day_and_night(ClientNames(50), 3, share=0.4, jitter=0.1)
    shares, starts = [], []
    for name in ClientNames(50):
        seconds, there = 0.0, 0.0
        for _ in range(40):
            period = available.upcoming(name, seconds)
            assert period is not None
            assert max(period.start, 0.0) >= seconds
            there += period.end - period.start
            seconds = period.end
        shares.append(there / (40 * DAY))
        starts.append(available.upcoming(name, DAY).start % DAY)  # type: ignore[union-attr]
    assert np.mean(shares) == pytest.approx(0.4, abs=0.005)
    assert np.ptp(starts) > 0.8 * DAY  # around the world


def test_one_time_zone_and_no_jitter_are_plain_arithmetic() -> None:
    available = Availability.day_and_night(["a"], share=0.25, jitter=0.0, zones=0.0, day_seconds=8)
    assert available.upcoming("a", 1.0) == Period(0, 2)
    assert available.upcoming("a", 2.0) == Period(8, 10)


def test_a_day_depends_on_seed_client_and_day_alone() -> None:
    def days(clients: int, seed: int) -> Period | None:
        return Availability.day_and_night(ClientNames(clients), seed).upcoming("client-1", 1e6)

    assert days(2, 0) == days(10**8, 0) != days(2, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": 1.0}, "share must be between 0 and 1; given 1.0"),
        ({"share": 0.2, "jitter": 0.1}, "jitter must be from 0 to below 0.1, for this share; giv"),
        ({"zones": 2.0}, "zones must be from 0 to 1; given 2.0"),
        ({"day_seconds": 0.5}, "day_seconds must be a finite number, at least 1; given 0.5"),
        ({"when_away": "wait"}, "when_away must be 'later' or 'lose'; given 'wait'"),
    ],
)
def test_days_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Availability.day_and_night(ClientNames(3), **change)


def test_periods_may_be_given_by_client() -> None:
    available = Availability.from_periods({"a": [(0, 1), (3, 4)], "b": []}, repeat_every=5)
    assert available.is_there("a", 5.5)
    assert not available.is_there("a", 1.0)
    assert not available.is_there("b", 1.0)
    with pytest.raises(
        SettingError, match=r"must have every client of the run; given none of .*'c"
    ):
        available.is_there("c", 1.0)
    with pytest.raises(SettingError, match=r"periods of client 'a' must be .*before 5; given \(5,"):
        Availability.from_periods({"a": [(5, 6)]}, repeat_every=5)


def written(folder: Path, name: str, content: str | dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_csv_file_is_repeated_every_day_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "client,start,end\nx,79200,108000\ny,0,60\nx,40000,40060\n")
    every_day = Availability.from_csv(path)
    assert every_day.is_there("x", 0.0)
    assert every_day.is_there("x", 3 * DAY + 21599)
    assert not every_day.is_there("x", 3 * DAY + 21600)
    assert every_day.is_there("x", 3 * DAY + 40030)
    once = Availability.from_csv(path, repeat_every=None)
    assert once.upcoming("x", 0.0) == Period(40000, 40060)
    assert once.upcoming("y", 60.0) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must have the columns client, start, end; it has no client, start, end"),
        ("client,start\na,1\n", "it has no end"),
        ("client,start,end\n", "must have at least one line of a client; given none"),
        ("client,start,end\n,0,1\n", "line 2: client must be a name; given ''"),
        ("client,start,end\na,0,1\na,-5,1\n", "line 3: start must be a number, at least 0; given"),
        ("client,start,end\na,soon,1\n", "line 2: start must be .*; given 'soon'"),
        ("client,start,end\na,5,5\n", "line 2: end must be a number above 5, the start; given '5'"),
        ("client,start,end\na,5\n", "line 2: end must be a number above 5, the start; given None"),
        ("client,start,end\na,5,inf\n", "line 2: end must be a number above 5"),
        (
            "client,start,end\na,86400,90000\n",
            r"line 2: start must be below 86400, .* given '86400",
        ),
        ('client,start,end\n"a\x00,0,1\n', "line 2"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said_in_one_line(
    tmp_path: Path, content: str, message: str
) -> None:
    path = written(tmp_path, "a.csv", content)
    with pytest.raises(FileError, match=message) as caught:
        Availability.from_csv(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_missing_or_too_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileError, match=r"cannot be read from .*none\.csv': No such file"):
        Availability.from_csv(tmp_path / "none.csv")
    path = written(tmp_path, "a.json", {"x": 1})
    monkeypatch.setattr(public_traces, "MOST_BYTES", 7)
    monkeypatch.setattr(periods_csv, "MOST_BYTES", 7)
    for read in (Availability.from_json, Availability.from_csv):
        with pytest.raises(FileError, match="must have at most 7 bytes; has 8"):
            read(path)


def messages(*lines: tuple[str, str]) -> str:
    return "\n".join(f"2020-01-28 {clock}\t{state}" for clock, state in lines)


FLASH = {
    "7": {
        "guid": "7",
        "model": "CPH1801",
        "messages": messages(
            ("10:00:00", "screen_lock"),
            ("10:00:10", "80.0%"),
            ("10:00:20", "battery_charged_on"),
            ("10:00:30", "wifi"),  # available from here, second 30,
            ("10:00:35", "screen_off"),
            ("10:00:50", "4G"),  # to here, second 50;
            ("10:01:00", "Wifi"),  # from second 60
            ("10:01:05", "screen_unlock"),  # to second 65
            ("10:01:30", "screen_lock"),  # and from second 90
            ("10:01:40", "81%"),  # to the end of the trace, second 100
        ),
    },
    "8": {"messages": messages(("10:00:50", "screen_on"), ("10:01:50", "battery_charged_off"))},
}


def test_flash_counts_a_locked_screen_a_charging_battery_and_wifi(tmp_path: Path) -> None:
    trace = Availability.from_json(written(tmp_path, "a.json", FLASH))
    assert trace.upcoming("7", 0.0) == Period(30, 50)
    assert trace.upcoming("7", 50.0) == Period(60, 65)
    assert trace.upcoming("7", 65.0) == Period(90, 100)
    assert trace.upcoming("7", 100.0) == Period(130, 150)  # the trace again, after 100 s
    assert trace.upcoming("8", 0.0) is None


def test_lines_of_a_trace_count_in_the_order_of_their_times(tmp_path: Path) -> None:
    lines = str(FLASH["7"]["messages"]).split("\n")
    mixed = {"7": {"messages": "\n".join([*lines[5:], "", *lines[:5]])}}
    trace = Availability.from_json(written(tmp_path, "a.json", mixed))
    assert trace.upcoming("7", 0.0) == Period(30, 50)


def test_a_trace_that_begins_later_is_there_before_as_its_repetition(tmp_path: Path) -> None:
    late = messages(
        ("10:00:40", "screen_lock"),
        ("10:00:40", "wifi"),
        ("10:00:50", "battery_charged_on"),
        ("10:01:00", "battery_charged_off"),
    )
    both = {**FLASH, "9": {"messages": late}}
    trace = Availability.from_json(written(tmp_path, "a.json", both))
    # 20 s long, from second 40; available in seconds 50 to 60, and so in 10 to 20 and 30 to 40.
    assert trace.upcoming("9", 0.0) == Period(10, 20)
    assert trace.upcoming("9", 20.0) == Period(30, 40)


def test_flash_s_own_cache_and_fedscale_s_trace_are_read_too(tmp_path: Path) -> None:
    both = {
        "1": {"isSuccess": True, "trace_start": 500, "trace_end": 600, "ready_time": [[510, 520]]},
        "2": {
            "duration": 9,
            "active": [5, 20],
            "inactive": [8, 26],
            "finish_time": 50,
            "model": "",
        },
    }
    trace = Availability.from_json(written(tmp_path, "a.json", both))
    # Time 0 is the earliest in the file: FedScale's traces begin at 0.
    assert trace.upcoming("1", 0.0) == Period(10, 20)
    assert trace.upcoming("2", 8.0) == Period(20, 26)
    assert trace.upcoming("2", 26.0) == Period(55, 58)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must be a mapping with at least one user; given \\[\\]"),
        ("{}", "must be a mapping with at least one user; given {}"),
        ("{", "availability cannot be read from .*: Expecting property name"),
        ("[" * 100_000, "availability cannot be read from .*: it is nested too deeply"),
        ({"u": 3}, "user 'u': must be a mapping; given 3"),
        ({"u": {"model": 1}}, "user 'u': must have messages, ready_time, or active .* has 'model'"),
        ({"u": {"messages": 3}}, "user 'u': messages must be a text; given 3"),
        ({"u": {"messages": "\n"}}, "user 'u': messages must have lines; given none"),
        ({"u": {"messages": "2020-01-28 10:00:00 wifi"}}, "line 1 of its messages must be a time,"),
        ({"u": {"messages": "x\twifi\n"}}, "line 1 of its messages must begin with a time .*'x'"),
        ({"u": {"messages": "x\twifi\ny\tphone"}}, "line 2 of its messages must .*'y.tphone'"),
        ({"u": {"messages": "2020-01-28 10:00:00\twifi"}}, "must last at least 1 s; given"),
        ({"u": {"ready_time": [], "trace_start": 0}}, "must last at least 1 s; given 0 to nan"),
        (
            {"u": {"ready_time": [[1]], "trace_start": 0, "trace_end": 9}},
            r"ready_time must be a list of pairs \[start, end\]",
        ),
        (
            {"u": {"ready_time": [[1, 10]], "trace_start": 0, "trace_end": 9}},
            "must have periods from 0 to 9, the times of the whole trace; given 1 to 10",
        ),
        ({"u": {"active": [1], "inactive": []}}, "active and inactive must be lists of the same"),
        (
            {"u": {"active": [1], "inactive": ["x"], "finish_time": 9}},
            "must have periods from 0 to 9, the times of the whole trace; given 1 to nan",
        ),
    ],
)
def test_what_is_wrong_with_a_public_trace_is_said_in_one_line(
    tmp_path: Path, content: str | dict[str, Any], message: str
) -> None:
    path = written(tmp_path, "a.json", content)
    with pytest.raises(FileError, match=message) as caught:
        Availability.from_json(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_user_that_cannot_be_read_is_left_out_and_named_when_asked_for(tmp_path: Path) -> None:
    content = {**FLASH, "9": {"messages": "2020-01-28 10:00:00\tno_such_state"}}
    trace = Availability.from_json(written(tmp_path, "a.json", content))
    assert set(trace.traces) == {"7", "8"}
    with pytest.raises(FileError, match="user '9': line 1 of its messages must be a time, a tab"):
        trace.upcoming("9", 0.0)


def test_clients_get_the_traces_of_users_drawn_by_the_seed(tmp_path: Path) -> None:
    users = {
        str(number): {"active": [number], "inactive": [number + 1], "finish_time": 99}
        for number in range(40)
    }
    trace = Availability.from_json(written(tmp_path, "a.json", users))

    def starts(clients: int, seed: int) -> list[Period | None]:
        known = trace.for_clients(ClientNames(clients), seed)
        return [known.upcoming(name, 0.0) for name in ClientNames(20)]

    assert starts(20, 0) == starts(10**8, 0) != starts(20, 1)
    assert len(set(starts(20, 0))) > 10


def test_clients_with_traces_of_their_own_names_keep_them() -> None:
    periods = {"client-0": [(0.0, 1.0)], "client-1": [(5.0, 6.0)]}
    own = Availability.from_periods(periods)
    assert own.for_clients(ClientNames(2)).upcoming("client-1", 0.0) == Period(5, 6)
    with pytest.raises(SettingError, match="given none of client 'client-2'"):
        own.for_clients(ClientNames(3))
