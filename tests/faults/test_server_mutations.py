"""A durable server that is broken on purpose is found broken."""

from typing import Any

import numpy as np
import pytest

from asyncfeded.callbacks import checkpoint
from asyncfeded.core import server
from asyncfeded.core.clients import ClientRecord, Clients, protocol_fault
from asyncfeded.core.messages import ClientUpdate, Receipt, Refusal
from asyncfeded.core.rule_state import RuleState
from asyncfeded.core.state import ClientsState, RuleMemory
from asyncfeded.runtime import loop
from asyncfeded.runtime.transport import Losing, Quiet, Signal
from asyncfeded.store import codec, durable, scan
from asyncfeded.store.disk import Buffer
from asyncfeded.store.durable import Durable
from asyncfeded.store.group_commit import GroupCommit
from asyncfeded.store.signals import encoded_in_pieces
from faults.finding import found_by
from faults.server_history import ServerHistory
from faults.test_mutations import NoSyncOfJournals, content_unchecked

restore_clients, receive = Clients.restore, server.Server.receive


def forget_what_was_taken(clients: Clients, state: ClientsState) -> dict[str, int]:
    """Restore clients without the table of the updates that were taken."""
    held = restore_clients(clients, state)
    for group in (clients._taking_part, clients._resting, clients._left):
        for name, client in group.items():
            client.last_taken = client.last_delta_norm = None
            client.next_round = 1 if name in held else 0
    return held


def forget_the_rules_state(_: RuleState, memory: RuleMemory) -> None:
    """Restore nothing of the rule."""


def send_at_once(carrier: Durable, all_of_it: bool = False) -> None:
    """Send every task before its signal is safe."""
    while carrier._held:
        carrier._inner.send(carrier._held.popleft()[1])


def handle_before_writing(carrier: Durable) -> Signal | None:
    """Write a signal down when the next one is asked for."""
    late = getattr(carrier, "_late", None)
    if late is not None and not isinstance(late, Quiet):
        carrier._number = carrier._records.append(*encoded_in_pieces(late))
    if carrier._replaying:
        if (signal := next(carrier._replayed, None)) is not None:
            return signal
        carrier._replaying = False
        carrier._absent = set(carrier._server.clients)
    carrier._late = carrier._meant()  # type: ignore[attr-defined]
    return carrier._late  # type: ignore[attr-defined,no-any-return]


def no_round_is_old(client: ClientRecord, update: ClientUpdate) -> Refusal | None:
    """Take whatever was trained from the client's version for the answer to its task."""
    if client.task is not None and update.version == client.task.version:
        return None
    return protocol_fault(client, update)


def none_but_updates(signal: Signal) -> list[bytes | memoryview]:
    """Write losses down as losses of a round that nobody is in."""
    if isinstance(signal, Losing):
        signal = Losing(signal.seconds, signal.client_id, -1, signal.reason)
    return encoded_in_pieces(signal)


def without_waiting(group: GroupCommit, number: int) -> None:
    """Say that a record is safe while it waits to be written."""
    group.committed = max(group.committed, number)


def snapshot_at_once(group: GroupCommit, *content: Buffer) -> None:
    """Make a snapshot while records wait that it has already."""
    group._journal.snapshot(*content)


def spoil(one: server.Server, update: ClientUpdate, held_seconds: float | None = None) -> Receipt:
    """Compute in the memory of an update that is still to be written."""
    receipt = receive(one, update, held_seconds)
    if isinstance(update.delta, np.ndarray):
        update.delta[:] = 0
    return receipt


class NeverGivesUp(Durable):
    """Waits for ever for those who took part before a restart."""

    def _listen(self) -> Signal | None:
        self._awaited_until = float("inf")
        return super()._listen()


@pytest.mark.parametrize(
    ("place", "name", "mutation"),
    [
        (Clients, "restore", forget_what_was_taken),
        (RuleState, "restore", forget_the_rules_state),
        (Durable, "_send_what_is_safe", send_at_once),
        (Durable, "next_signal", handle_before_writing),
        (GroupCommit, "wait_for", without_waiting),
        (GroupCommit, "snapshot", snapshot_at_once),
        (Durable, "replaying", False),
        (durable, "encoded_in_pieces", none_but_updates),
        (scan, "content_of", content_unchecked),
        (server, "protocol_fault", no_round_is_old),
        (checkpoint, "Durable", NeverGivesUp),
    ],
)
def test_a_promise_that_is_broken_is_found(
    place: Any, name: str, mutation: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, mutation)
    assert found_by(ServerHistory)


def test_a_journal_that_is_not_synced_is_found() -> None:
    assert found_by(lambda seed: ServerHistory(seed, make_disk=NoSyncOfJournals))


def test_time_that_goes_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "max", lambda _, seconds: seconds, raising=False)
    assert found_by(ServerHistory)


def test_an_update_that_changes_while_it_waits_to_be_written_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "SMALL", 0)  # no record is copied, as if all were large
    for seed in range(3):
        ServerHistory(seed).run()
    monkeypatch.setattr(server.Server, "receive", spoil)
    assert "changes while it waits" in str(found_by(ServerHistory))
