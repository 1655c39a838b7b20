"""Nobody trains while away: rounds end later or are lost, to the second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toy
from asyncfeded import Availability, ClientUpdate, Membership, RoundTime, Server, TrainTask, rules
from asyncfeded.availability.availability import WhenAway
from asyncfeded.availability.away import attendance, while_there
from asyncfeded.core.errors import SettingError
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.vectors import Vector
from asyncfeded.on_demand import ClientNames
from asyncfeded.result import Result
from asyncfeded.runtime.devices import Devices
from asyncfeded.runtime.evaluation import Pending
from asyncfeded.runtime.events import Event, Joined, Left, Received, Replaced, RoundLost
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.selection import Selection
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.selection import UniformSelection
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess, Workers, make_workers
from asyncfeded.store.log import EventLog

Spans = Sequence[tuple[float, float]]
ALWAYS: Spans = [(0.0, 1e9)]
WAYS: tuple[WhenAway, ...] = ("later", "lose")

TWO = DeviceModel(
    {"fast": Device(1.0, 1.0), "slow": Device(2.0, 2.0)}, jitter=0.0, transfer_spread=0.0
)
"""Rounds of 1 s and of 2 s at K = 1, each second steady."""


def ones_and_hundreds(task: TrainTask) -> ClientUpdate:
    step = np.array([1.0 if task.client_id == "fast" else 100.0], np.float32)
    return ClientUpdate(task.client_id, task.version, step, 1, task.epochs, task.round)


def events_of(
    server: Server,
    availability: Availability,
    seconds: float,
    *,
    devices: Devices = TWO,
    members: Sequence[Membership] = (Membership("fast"), Membership("slow")),
    workers: Workers | None = None,
    selection: Selection | None = None,
) -> list[Event]:
    """A run in which clients are there and away."""
    workers = InProcess(ones_and_hundreds) if workers is None else workers
    known, presence = attendance(members, availability, selection)
    machines = while_there(devices, availability, seconds, selection)
    transport = VirtualTransport(machines, workers, known, seconds, presence)
    return list(run(server, transport, seconds, selection=selection))


def told(events: Sequence[Event], client_id: str) -> list[tuple[str, float, int | None]]:
    """What happened to a client: the event, its time and its round."""
    found: list[tuple[str, float, int | None]] = []
    for event in events:
        match event:
            case Received() if event.receipt.client_id == client_id:
                found.append(("update", event.seconds, event.round))
            case RoundLost(seconds, name, number, reason) if name == client_id:
                found.append((reason, seconds, number))
            case Joined(seconds, name) if name == client_id:
                found.append(("join", seconds, None))
            case Left(seconds, name) if name == client_id:
                found.append(("leave", seconds, None))
    return found


def slow_is_there(spans: Spans, when_away: WhenAway) -> Availability:
    return Availability.from_periods({"fast": ALWAYS, "slow": spans}, when_away=when_away)


def one_epoch(rule: str = "asyncfeded") -> Server:
    """Every round is of one epoch."""
    fixed = {"kappa": 0.0} if rule == "asyncfeded" else {}
    return Server(np.zeros(1, np.float32), rules.REGISTRY[rule](initial_epochs=1, **fixed))


def test_a_round_goes_on_where_it_stopped_when_its_client_is_back() -> None:
    # 1 of 2 s until it goes, the other from 5 on: 6 s. Then whole rounds, but for 9 to 9.5.
    spans = [(0.0, 1.0), (5.0, 9.0), (9.5, 30.0)]
    events = events_of(one_epoch(), slow_is_there(spans, "later"), 13.0)
    assert told(events, "slow") == [
        ("join", 0.0, None),
        ("update", 6.0, 0),
        ("update", 8.0, 1),
        ("update", 10.5, 2),
        ("update", 12.5, 3),
    ]


def test_a_lost_round_is_counted_and_its_client_joins_again() -> None:
    # The round of 2 s is lost at 1; from 5 on, one is done by 7, and the next is lost at 8.
    spans = [(0.0, 1.0), (5.0, 8.0), (9.0, 30.0)]
    server = one_epoch()
    events = events_of(server, slow_is_there(spans, "lose"), 12.0)
    assert told(events, "slow") == [
        ("join", 0.0, None),
        ("away", 1.0, 0),
        ("leave", 1.0, None),
        ("join", 5.0, None),
        ("update", 7.0, 1),
        ("away", 8.0, 2),
        ("leave", 8.0, None),
        ("join", 9.0, None),
        ("update", 11.0, 3),
    ]
    assert server.lost == {"away": 2}
    result = Result({})
    for event in events:
        result.add(event)
    assert result.lost_rounds == {"away": 2}
    assert result.lost == {}  # no process was lost
    assert result.clients["slow"].lost_rounds == 2
    assert server.stored_versions == 2  # the newest, and the one that the slow client has now


def test_a_barrier_waits_for_who_is_away_only_if_the_round_ends_later() -> None:
    # The fast client needs 1 s, the slow one is away after 1.5 of 2 s and back at 5.
    spans = [(0.0, 1.5), (5.0, 30.0)]
    versions: dict[WhenAway, list[tuple[float, int]]] = {}
    for when_away in WAYS:
        server = one_epoch("fedavg")
        events = events_of(server, slow_is_there(spans, when_away), 7.0)
        versions[when_away] = [
            (e.seconds, e.receipt.version) for e in events if isinstance(e, Received)
        ]
    # Later: the first round ends at 5.5, the second at 7.5.
    assert versions["later"] == [(1.0, 1), (5.5, 2), (6.5, 2)]
    # Lost: it ends at 1.5, when the slow client goes. The fast one alone makes those that end at
    # 2.5, 3.5 and 4.5; the slow one joins the round of 4.5, which then lasts until 7.
    assert versions["lose"] == [(1.0, 1), (2.5, 3), (3.5, 4), (4.5, 5), (5.5, 5), (7.0, 6)]


def test_clients_join_when_they_are_first_there() -> None:
    for when_away in WAYS:
        events = events_of(one_epoch(), slow_is_there([(3.0, 30.0)], when_away), 6.0)
        assert told(events, "slow") == [("join", 3.0, None), ("update", 5.0, 0)]
        never = events_of(one_epoch(), slow_is_there([], when_away), 3.0)
        assert told(never, "slow") == []
        assert len(told(never, "fast")) == 4


def test_a_round_that_can_never_end_keeps_nobody_from_the_end_of_the_run() -> None:
    for when_away in WAYS:
        events = events_of(one_epoch(), slow_is_there([(0.0, 1.0)], when_away), 4.0)
        lost = [("away", 1.0, 0), ("leave", 1.0, None)] if when_away == "lose" else []
        assert told(events, "slow") == [("join", 0.0, None), *lost]
        assert told(events, "fast")[-1] == ("update", 4.0, 3)


def test_memberships_hold_where_clients_come_and_go() -> None:
    members = [Membership("slow", 2.0, 9.0), Membership("slow", 20.0, 30.0)]
    # Away from 4 to 5, and when it leaves at 9; there again from 21.
    spans = [(0.0, 4.0), (5.0, 10.0), (21.0, 40.0)]
    lost = events_of(one_epoch(), slow_is_there(spans, "lose"), 27.0, members=members)
    # At 4 a round ends when its client goes, which is too late. At 9 a client leaves for another
    # reason than being away, and the end of its round is not told.
    assert told(lost, "slow") == [
        ("join", 2.0, None),
        ("away", 4.0, 0),
        ("leave", 4.0, None),
        ("join", 5.0, None),
        ("update", 7.0, 1),
        ("leave", 9.0, None),
        ("join", 21.0, None),
        ("update", 23.0, 3),
        ("update", 25.0, 4),
        ("update", 27.0, 5),
    ]
    later = events_of(one_epoch(), slow_is_there(spans, "later"), 27.0, members=members)
    assert told(later, "slow") == [
        ("join", 2.0, None),
        ("update", 4.0, 0),
        ("update", 7.0, 1),
        ("leave", 9.0, None),
        ("join", 21.0, None),
        ("update", 23.0, 3),
        ("update", 25.0, 4),
        ("update", 27.0, 5),
    ]


def test_who_comes_back_goes_on_with_its_epochs_and_rounds() -> None:
    spans = {name: [(0.0, 6.0), (9.0, 15.0), (16.0, 40.0)] for name in toy.NAMES}
    available = Availability.from_periods(spans, when_away="lose")
    server = Server(toy.toy_initial(), rules.asyncfeded())
    members = [Membership(name) for name in toy.NAMES]
    workers = InProcess(toy.toy_train)
    events = events_of(
        server, available, 40.0, devices=toy.toy_devices(), members=members, workers=workers
    )
    epochs: dict[str, int] = {}
    rounds: dict[str, int] = {}
    returned = 0
    for event in events:
        if isinstance(event, Received):
            name = event.receipt.client_id
            assert event.round is not None
            assert event.round > rounds.get(name, -1)
            rounds[name] = event.round
            assert event.receipt.next_task is not None
            epochs[name] = event.receipt.next_task.epochs
        if isinstance(event, Joined) and event.client_id in epochs:
            assert event.epochs == epochs[event.client_id]
            returned += event.epochs != 10
    assert returned >= 4


@pytest.mark.parametrize(
    ("begins", "expected"),
    [
        (0.0, RoundTime(0.0, 0.0, 2.0, 0.0)),
        (1.0, RoundTime(0.0, 0.0, 2.0 + 3.0, 0.0)),  # in two pieces, 1 to 2 and 5 to 6
        (2.0, RoundTime(0.0, 3.0, 2.0, 0.0)),  # waits before it trains: on Ray a process sleeps
        (6.5, RoundTime(0.0, 0.0, 2.0, 0.0)),
        (7.5, RoundTime(0.0, inf, 0.0, 0.0)),  # not before the end
    ],
)
def test_who_is_away_at_first_waits_before_it_trains(begins: float, expected: RoundTime) -> None:
    available = slow_is_there([(0.0, 2.0), (5.0, 9.0)], "later")
    machines = while_there(TWO, available, 20.0)
    assert machines.round_time("slow", 0, 1, 0, begins) == expected


def test_a_hang_stands_still_while_its_client_is_away() -> None:
    # The round is lost; its hang of half a round comes last, and 0.5 s of it after 9.
    devices = replace(TWO, recorded={("slow", 0): 0.5})
    available = slow_is_there([(0.0, 2.5), (9.0, 20.0)], "later")
    time = while_there(devices, available, 20.0).round_time("slow", 0, 1, 0, 0.0)
    assert time == RoundTime(0.0, 0.5 + 6.5 + 0.5, 2.0, 0.0, lost=True)


@pytest.mark.parametrize("seconds", [-1.0, nan])
@pytest.mark.parametrize("when_away", ["later", "lose"])
def test_a_round_of_less_than_no_time_is_refused_by_the_client_s_name(
    seconds: float, when_away: WhenAway
) -> None:
    class Wrong:
        def round_time(self, *_: object) -> RoundTime:
            return RoundTime(0.0, 0.0, seconds, 0.0)

    available = slow_is_there(ALWAYS, when_away)
    for selection in (None, UniformSelection(["slow"], 1, 0, available)):
        with pytest.raises(SettingError, match=r"at least 0 seconds; given .* round 0 .* 'slow'"):
            events_of(
                one_epoch(),
                available,
                9.0,
                devices=Wrong(),
                members=[Membership("slow")],
                selection=selection,
            )


class Rush:
    """Devices of one's own: a round takes 1 s, or 2 s if it begins between 3 and 6."""

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        return RoundTime(0.0, 0.0, 2.0 if 3 <= begins < 6 else 1.0, 0.0)


def test_devices_are_told_when_a_round_begins_and_not_when_it_is_sent() -> None:
    # Sent at 2, begun at 3.5 when the client is there again: 2 s instead of 1. The second is sent
    # at 5.5 and is away for half a second in its 2 s; the third begins at 8.
    spans = [(0.0, 2.0), (3.5, 7.0), (7.5, 20.0)]
    available = slow_is_there(spans, "later")
    events = events_of(one_epoch(), available, 9.0, devices=Rush(), members=[Membership("slow")])
    times = [event.seconds for event in events if isinstance(event, Received)]
    assert times == [1.0, 2.0, 5.5, 8.0, 9.0]


@pytest.mark.parametrize("when_away", ["later", "lose"])
@pytest.mark.parametrize("name", ["asyncfeded", "fedbuff", "fedavg"])
def test_the_log_is_the_same_for_any_number_of_workers(name: str, when_away: WhenAway) -> None:
    available = Availability.day_and_night(
        toy.NAMES, share=0.5, jitter=0.1, day_seconds=7.0, when_away=when_away
    )
    members = [Membership(client) for client in toy.NAMES]
    digests = set()
    for workers in (1, 2, 3):
        server = Server(toy.toy_initial(), rules.REGISTRY[name]())
        pool = make_workers(toy.toy_train, workers, toy.SIZE)
        log = EventLog()
        devices = toy.toy_devices(0.1)
        for event in events_of(
            server, available, 30.0, devices=devices, members=members, workers=pool
        ):
            log.write(event)
        digests.add(log.sha256)
        assert server.accepted > 10
    assert len(digests) == 1


def test_clients_that_are_always_there_change_nothing() -> None:
    members = [Membership(client) for client in toy.NAMES]
    digests = set()
    choices: tuple[WhenAway | None, ...] = (None, "later", "lose")
    for when_away in choices:
        server = Server(toy.toy_initial(), rules.asyncfeded())
        devices: Devices = toy.toy_devices(0.3)
        presence = None
        if when_away is not None:
            spans = dict.fromkeys(toy.NAMES, ALWAYS)
            available = Availability.from_periods(spans, when_away=when_away)
            devices = while_there(devices, available, 30.0)
            _, presence = attendance(members, available)
        transport = VirtualTransport(devices, InProcess(toy.toy_train), members, 30.0, presence)
        log = EventLog()
        for event in run(server, transport, 30.0):
            log.write(event)
        digests.add(log.sha256)
    assert len(digests) == 1


@dataclass
class Watched:
    """Devices that remember each round: when it began and what it took."""

    devices: Devices
    rounds: dict[tuple[str, int], tuple[float, RoundTime]] = field(default_factory=dict)

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        time = self.devices.round_time(client_id, round_number, epochs, num_bytes, begins)
        self.rounds[client_id, round_number] = begins, time
        return time


@dataclass
class Counting(InProcess):
    """Workers that remember what they were told to train."""

    submitted: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(toy.toy_train)

    def submit(self, task: TrainTask, due: float) -> None:
        self.submitted.add((task.client_id, task.round))

    def evaluate(self, parameters: Vector, seconds: float) -> Pending:
        raise NotImplementedError


def seconds_there(spans: Spans, begins: float, ends: float) -> float:
    """How long a client is there between two times."""
    return sum(max(0.0, min(end, ends) - max(start, begins)) for start, end in spans)


@st.composite
def comings_and_goings(draw: st.DrawFn) -> dict[str, Spans]:
    """Periods of every client, in eighths of a second, with time between them."""
    periods: dict[str, Spans] = {}
    for name in toy.NAMES:
        lengths = draw(st.lists(st.integers(1, 60), max_size=12))
        times = np.cumsum([draw(st.integers(0, 20)), *lengths]) / 8
        pairs = zip(times[0::2], times[1::2], strict=False)
        periods[name] = [(float(start), float(end)) for start, end in pairs]
    return periods


RULES: Mapping[str, AnyRule] = {
    "asyncfeded": rules.asyncfeded(),
    "fedbuff": rules.fedbuff(buffer_size=2),
    "fedavg": rules.fedavg(),
}


@given(
    comings_and_goings(),
    st.sampled_from(sorted(RULES)),
    st.sampled_from([0.0, 0.4]),
    st.sampled_from([None, 1, 2]),
)
@pytest.mark.parametrize("when_away", ["later", "lose"])
def test_nobody_trains_while_away_and_nothing_is_trained_in_vain(
    when_away: WhenAway,
    periods: dict[str, Spans],
    rule: str,
    suspension: float,
    at_work: int | None,
) -> None:
    available = Availability.from_periods(periods, when_away=when_away)
    selection = None if at_work is None else UniformSelection(toy.NAMES, at_work, 0, available)
    members = [Membership(name) for name in (selection.first() if selection else toy.NAMES)]
    inner, workers = Watched(toy.toy_devices(suspension)), Counting()
    outer = Watched(while_there(inner, available, 30.0, selection))
    known, presence = attendance(members, available, selection)
    transport = VirtualTransport(outer, workers, known, 30.0, presence)
    server = Server(toy.toy_initial(), RULES[rule], population=4)
    received = set()
    for event in run(server, transport, 30.0, selection=selection):
        if isinstance(event, Received):
            assert event.receipt.accepted
            received.add((event.receipt.client_id, event.round or 0))
    assert workers.submitted == received
    for name, number in received:
        begins, time = outer.rounds[name, number]
        _, plain = inner.rounds[name, number]
        trains = begins + time.download + time.hangs
        trained = trains + time.compute
        assert seconds_there(periods[name], trains, trained) == pytest.approx(plain.compute)
        whole = seconds_there(periods[name], begins, begins + time.total)
        assert whole == pytest.approx(plain.total)
        if when_away == "lose":  # in one piece
            assert time.compute == plain.compute


def test_who_is_chosen_is_there_and_a_lost_place_goes_to_another() -> None:
    # Each of three clients is there for 20 s of every 30; one at a time is at work.
    spans = {f"client-{n}": [(10.0 * n, 10.0 * n + 20.0)] for n in range(3)}
    available = Availability.from_periods(spans, repeat_every=30.0, when_away="lose")
    names = ClientNames(3)
    devices = DeviceModel({n: Device(3.0, 3.0) for n in names}, jitter=0.0, transfer_spread=0.0)
    selection = UniformSelection(names, 1, 0, available)
    members = [Membership(name) for name in selection.first()]
    server = one_epoch()
    events = events_of(
        server, available, 300.0, devices=devices, members=members, selection=selection
    )
    assert server.lost["away"] > 3
    assert not [event for event in events if isinstance(event, Left)]
    chosen = [event for event in events if isinstance(event, Replaced)]
    assert len(chosen) > 30
    for event in chosen:
        assert available.is_there(event.successor, event.seconds)


def test_where_everybody_is_away_the_first_to_return_goes_on() -> None:
    # All are away from 5 on; client-2 is back at 8, before the others.
    spans: dict[str, Spans] = {
        "client-0": [(0.0, 5.0), (9.0, 30.0)],
        "client-1": [(0.0, 5.0), (10.0, 30.0)],
        "client-2": [(0.0, 5.0), (8.0, 30.0)],
    }
    for when_away in WAYS:
        available = Availability.from_periods(spans, when_away=when_away)
        names = ClientNames(3)
        devices = DeviceModel({n: Device(2.5, 2.5) for n in names}, jitter=0.0, transfer_spread=0.0)
        selection = UniformSelection(names, 1, 0, available)
        members = [Membership(name) for name in selection.first()]
        events = events_of(
            one_epoch(), available, 20.0, devices=devices, members=members, selection=selection
        )
        # Rounds of 2.5 s: until 2.5, until 5 (lost if a client goes at its end), then from 8 on.
        times = {e.seconds: e.receipt.client_id for e in events if isinstance(e, Received)}
        assert times[10.5] == "client-2"
        assert not [seconds for seconds in times if 5.0 < seconds < 10.5]
