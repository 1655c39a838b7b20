"""When clients are there: from a file, drawn, or given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Literal, Protocol, get_args

from asyncfeded import randomness
from asyncfeded.availability.day_and_night import DAY_SECONDS, DailyPeriods
from asyncfeded.availability.periods import LEAST_CYCLE_SECONDS, RecordedPeriods
from asyncfeded.availability.periods_csv import read_csv
from asyncfeded.availability.public_traces import read_json
from asyncfeded.core.errors import FileError, SettingError, require
from asyncfeded.on_demand import ClientNames, OnDemand
from asyncfeded.runtime.membership import Period

WhenAway = Literal["later", "lose"]
"""What becomes of the round of a client that goes away: it ends later, or it is lost."""

KEPT_TRACES = 1 << 14


class Trace(Protocol):
    """The periods in which one client is there."""

    def upcoming(self, seconds: float) -> Period | None:
        """The period around this time, or the next one; its end lies after `seconds`."""


@dataclass(frozen=True, slots=True)
class Availability:
    """When each client is there; nobody trains while away.

    `when_away` says what becomes of a round in the middle of which its client goes: "later", the
    rest of it waits until the client is back; "lose", its update is lost, and the client joins
    again when it is back. `unreadable` says why some clients of a file have no trace.

    >>> Availability.from_periods({"client-0": [(0, 60), (100, 200)]}, repeat_every=300)
    """

    traces: Mapping[str, Trace]
    when_away: WhenAway = "later"
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.when_away in get_args(WhenAway)
        require(known, "when_away", "'later' or 'lose'", self.when_away)

    def upcoming(self, client_id: str, seconds: float) -> Period | None:
        """The period around this time or, if the client is away, the next; None if none is left.

        Its end lies after `seconds`.
        """
        try:
            trace = self.traces[client_id]
        except KeyError:
            raise self._without_trace(client_id) from None
        return trace.upcoming(seconds)

    def is_there(self, client_id: str, seconds: float) -> bool:
        """Whether a client is there at this time."""
        period = self.upcoming(client_id, seconds)
        return period is not None and period.start <= seconds

    def for_clients(self, names: Sequence[str], seed: int = 0) -> "Availability":
        """The same for these clients.

        Each has the trace of its own name. If no trace has the name of a client, as in a public
        trace of devices, each client gets one that is drawn by the seed.
        """
        known = names if isinstance(names, ClientNames) else frozenset(names)
        if any(name in known for name in self.traces):
            for name in names:
                if name not in self.traces:
                    raise self._without_trace(name)
            return self
        users = list(self.traces)

        def drawn(client_id: str) -> Trace:
            draw = randomness.passing_generator(seed, "trace", client_id)
            return self.traces[users[int(draw.integers(len(users)))]]

        return replace(self, traces=OnDemand(names, drawn, KEPT_TRACES), unreadable={})

    def _without_trace(self, client_id: str) -> SettingError | FileError:
        if client_id in self.unreadable:
            return FileError(self.unreadable[client_id])
        return SettingError(
            f"availability must have every client of the run; given none of client {client_id!r}"
        )

    @classmethod
    def from_periods(
        cls,
        periods: Mapping[str, Sequence[tuple[float, float]]],
        repeat_every: float | None = None,
        when_away: WhenAway = "later",
    ) -> "Availability":
        """From the periods (start, end) of each client, in seconds of the run."""
        cycle = _cycle(repeat_every)
        for client_id, own in periods.items():
            for start, end in own:
                right = 0 <= start < end and start < cycle
                before = "" if cycle == inf else f" and start before {cycle:g}"
                limit = f"(start, end) of which 0 ≤ start < end{before}"
                require(right, f"periods of client {client_id!r}", limit, (start, end))
        traces = {name: RecordedPeriods(own, cycle) for name, own in periods.items()}
        return cls(traces, when_away)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        repeat_every: float | None = DAY_SECONDS,
        when_away: WhenAway = "later",
    ) -> "Availability":
        """Read a CSV file with the columns client, start and end, in seconds.

        Each line is a time in which the client is there. A client may have many lines. The
        periods begin again after `repeat_every` seconds, by default every day; None: never.
        """
        return cls(read_csv(Path(path), _cycle(repeat_every)), when_away)

    @classmethod
    def from_json(cls, path: str | Path, when_away: WhenAway = "later") -> "Availability":
        r"""Read a public trace of devices as it is published.

        These forms are known, each a mapping from users to records:

        - FLASH's traces of smartphones (Chengxu Yang et al., Characterizing Impacts of
          Heterogeneity in Federated Learning upon Large-Scale Smartphone Data, WWW 2021):
          `"messages"`, with lines such as `2020-01-28 10:15:00\tscreen_lock`. A user is available
          while the screen is locked, the battery charges and Wi-Fi is on: after `screen_lock`,
          `battery_charged_on` and `wifi`, until `screen_unlock`, `battery_charged_off`, or another
          network (`2G`, `3G`, `4G`, `5G`, `Unknown`). `screen_on`, `screen_off` and levels such as
          `80%` change nothing. Time 0 of the run is the earliest time in the file, and each user's
          trace begins again when it is over. A period that is open at the end of a trace ends
          there.
        - FLASH's `cached_timers.json`: `"trace_start"`, `"trace_end"` and `"ready_time"`, a list
          of (start, end) in seconds.
        - FedScale's `client_behave_trace`, written as JSON: `"active"`, `"inactive"`, the times
          in seconds at which periods begin and end, and `"finish_time"`, when they begin again.

        A user whose record cannot be read has no trace; `unreadable` says why. For a run the
        traces are given to its clients by `for_clients`.
        """
        traces, unreadable = read_json(Path(path))
        return cls(traces, when_away, unreadable)

    @classmethod
    def day_and_night(
        cls,
        clients: Sequence[str],
        seed: int = 0,
        *,
        share: float = 1 / 3,
        jitter: float = 1 / 24,
        zones: float = 1.0,
        day_seconds: float = DAY_SECONDS,
        when_away: WhenAway = "later",
    ) -> "Availability":
        """Draw clients that are there once a day, for a `share` of it.

        All times are in units of a day. Each client's time of the day is drawn from U(0, zones): 1
        spreads them around the world, 0 puts all into one time zone. From day to day, the
        beginning and the end of a period move by up to `jitter`. `day_seconds` makes days shorter
        for short runs. Nothing is stored, for any number of clients.
        """
        require(0 < share < 1, "share", "between 0 and 1", share)
        most = min(share, 1 - share) / 2
        require(0 <= jitter < most, "jitter", f"from 0 to below {most:g}, for this share", jitter)
        require(0 <= zones <= 1, "zones", "from 0 to 1", zones)
        _cycle(day_seconds, "day_seconds")

        def drawn(client_id: str) -> DailyPeriods:
            draw = randomness.passing_generator(seed, "time-zone", client_id)
            zone = draw.uniform(0.0, zones)
            return DailyPeriods(client_id, seed, zone, share, jitter, day_seconds)

        return cls(OnDemand(clients, drawn, KEPT_TRACES), when_away)


def _cycle(seconds: float | None, name: str = "repeat_every") -> float:
    if seconds is None:
        return inf
    right = isfinite(seconds) and seconds >= LEAST_CYCLE_SECONDS
    require(right, name, f"a finite number, at least {LEAST_CYCLE_SECONDS:g}", seconds)
    return seconds
