"""Who is at work: drawn alike for the same seed, everybody alike, nobody twice at once."""

from collections import Counter

import numpy as np
import pytest

import toy
from asyncfeded import Availability, ClientUpdate, Refusal, Server, TrainTask, rules
from asyncfeded.core.errors import SettingError
from asyncfeded.on_demand import ClientNames
from asyncfeded.runtime.events import Event, Joined, Received, Replaced
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.transport import Arriving, Joining, Signal
from asyncfeded.simulation.selection import UniformSelection
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import make_workers
from builders import vector


def drawn(clients: int, at_work: int, seed: int, draws: int) -> list[str]:
    selection = UniformSelection(ClientNames(clients), at_work, seed)
    working = list(selection.first())
    assert len(set(working)) == at_work
    chosen = []
    for number in range(draws):
        place = number % at_work
        working[place] = selection.after(working[place])
        assert len(set(working)) == at_work
        chosen.append(working[place])
    return chosen


@pytest.mark.parametrize(("clients", "at_work"), [(1, 1), (5, 5), (5, 4), (40, 3), (3000, 10)])
def test_as_many_different_clients_are_at_work_as_in_the_beginning(
    clients: int, at_work: int
) -> None:
    assert set(drawn(clients, at_work, 0, 500)) <= set(ClientNames(clients))


def test_the_seed_decides() -> None:
    assert drawn(50, 4, 1, 100) == drawn(50, 4, 1, 100)
    assert drawn(50, 4, 1, 100) != drawn(50, 4, 2, 100)


def test_everybody_is_chosen_alike() -> None:
    counts = Counter(drawn(20, 5, 0, 20_000))
    # 1,000 each; the standard deviation of a count is about 31.
    assert set(counts) == set(ClientNames(20))
    assert max(abs(count - 1000) for count in counts.values()) < 150


def test_where_all_are_at_work_each_goes_on() -> None:
    selection = UniformSelection(ClientNames(3), 3)
    assert sorted(selection.first()) == list(ClientNames(3))
    assert [selection.after(name) for name in ClientNames(3)] == list(ClientNames(3))


def half_are_there(clients: int) -> Availability:
    """Those with an even number, for the first minute of every hour."""
    spans = {
        name: [(0.0, 60.0)] if number % 2 == 0 else [(1800.0, 1860.0)]
        for number, name in enumerate(ClientNames(clients))
    }
    return Availability.from_periods(spans, repeat_every=3600.0)


def test_everybody_who_is_there_is_chosen_alike() -> None:
    selection = UniformSelection(ClientNames(20), 4, 0, half_are_there(20))
    working = selection.first()
    counts: Counter[str] = Counter()
    for number in range(10_000):
        working[number % 4] = selection.after(working[number % 4], 30.0)
        counts[working[number % 4]] += 1
    # 1,000 each, with a standard deviation of about 31; nobody of the others.
    assert set(counts) == {f"client-{number}" for number in range(0, 20, 2)}
    assert max(abs(count - 1000) for count in counts.values()) < 150


@pytest.mark.parametrize("clients", [20, 3000])
def test_where_nobody_is_there_the_first_to_return_is_chosen(clients: int) -> None:
    selection = UniformSelection(ClientNames(clients), 2, 0, half_are_there(clients))
    working = selection.first()
    # At second 900 all are away: the odd ones return at 1800, the even ones at 3600.
    chosen = [selection.after(name, 900.0) for name in working]
    assert all(int(name.removeprefix("client-")) % 2 == 1 for name in chosen)


def test_clients_that_are_always_there_are_drawn_as_without_a_presence() -> None:
    names = ClientNames(50)
    always = Availability.from_periods({name: [(0.0, 1e9)] for name in names})
    chosen = []
    for presence in (None, always):
        selection = UniformSelection(names, 3, 0, presence)
        working = selection.first()
        chosen.append([*working, *(selection.after(name, 1.0) for name in working)])
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("at_work", [0, 4])
def test_a_number_at_work_out_of_range_is_named(at_work: int) -> None:
    with pytest.raises(SettingError, match=f"at_work must be .* from 1 to 3, .*given {at_work}"):
        UniformSelection(ClientNames(3), at_work)


def events_of(rule: str, at_work: int) -> tuple[Server, list[Event]]:
    server = Server(toy.toy_initial(), rules.REGISTRY[rule]())
    selection = UniformSelection(toy.NAMES, at_work)
    members = [Membership(name) for name in selection.first()]
    workers = make_workers(toy.toy_train, 1, toy.SIZE)
    transport = VirtualTransport(toy.toy_devices(), workers, members, 20.0)
    return server, list(run(server, transport, 20.0, selection=selection))


@pytest.mark.parametrize("rule", ["asyncfeded", "fedbuff", "fedavg"])
def test_whoever_has_reported_gives_its_place_to_another(rule: str) -> None:
    server, events = events_of(rule, at_work=2)
    working: set[str] = set()
    for event in events:
        match event:
            case Joined():
                working.add(event.client_id)
            case Received():
                assert event.receipt.client_id in working
                assert event.receipt.accepted
            case Replaced():
                assert event.successor not in working
                working.remove(event.client_id)
                working.add(event.successor)
        assert len(working) <= 2
    assert set(server.clients) == working
    replaced = [event for event in events if isinstance(event, Replaced)]
    assert len({event.successor for event in replaced}) >= 3


class Scripted:
    """A transport that brings what it is told to, and keeps what it is sent."""

    def __init__(self, signals: list[Signal]) -> None:
        self._signals = signals
        self.sent: list[tuple[str, int]] = []

    def send(self, task: TrainTask) -> None:
        self.sent.append((task.client_id, task.round))

    def next_signal(self) -> Signal | None:
        return self._signals.pop(0) if self._signals else None

    def close(self) -> None:
        pass


class SameThenOther:
    """Chooses the client that has reported once, and another ever after."""

    def __init__(self) -> None:
        self.asked = 0

    def first(self) -> list[str]:
        return ["a"]

    def after(self, client_id: str, seconds: float) -> str:
        self.asked += 1
        return client_id if self.asked == 1 else "b"


def test_a_duplicate_costs_nobody_their_place() -> None:
    update = ClientUpdate("a", 1, vector(1), 1, 10, 0)
    transport = Scripted([Joining(0.0, "a"), Arriving(1.0, update), Arriving(2.0, update)])
    server, selection = Server(vector(0), rules.asyncfeded()), SameThenOther()
    events = list(run(server, transport, 3.0, selection=selection))
    assert server.refused == {Refusal.DUPLICATE: 1}
    assert selection.asked == 1
    assert server.clients == ("a",)
    assert not any(isinstance(event, Replaced) for event in events)


def test_a_synchronous_round_is_of_those_at_work() -> None:
    server, events = events_of("fedavg", at_work=2)
    reported = [event for event in events if isinstance(event, Received)]
    assert server.version == 1 + len(reported) // 2


def test_a_client_that_returns_goes_on_with_its_epochs_and_rounds() -> None:
    _, events = events_of("asyncfeded", at_work=2)
    epochs: dict[str, int] = {}
    rounds: Counter[str] = Counter()
    returned = 0
    for event in events:
        if isinstance(event, Received):
            name = event.receipt.client_id
            assert event.round == rounds[name]
            rounds[name] += 1
            assert event.receipt.next_task is not None
            epochs[name] = event.receipt.next_task.epochs
        if isinstance(event, Replaced) and event.successor in epochs:
            assert event.epochs == epochs[event.successor]
            returned += event.epochs != 10
    assert returned >= 10


def test_memory_does_not_grow_with_the_clients() -> None:
    """A choice among a million takes as much memory as one among a thousand."""
    sizes = []
    for clients in (1_000, 1_000_000):
        selection = UniformSelection(ClientNames(clients), 10)
        working = selection.first()
        for number in range(500):
            working[number % 10] = selection.after(working[number % 10])
        sizes.append(len(selection._moved))
    assert max(sizes) <= 510
    assert np.ptp(sizes) < 300
