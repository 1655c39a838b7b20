"""The real server beside a naive one: whatever happens, both are the same to the bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from asyncfeded import ClientUpdate, Server, TrainTask, rules
from asyncfeded.store.codec import decode, encode
from asyncfeded.store.states import server_state, tree_of
from naive_server import BUFFER, EPOCHS, EPS, GAMMA_BAR, KAPPA, LAM, NaiveServer

SIZE = 3
NAMES = st.sampled_from("abc")
NUMBERS = st.floats(-1e3, 1e3, width=32)
DELTAS = st.one_of(
    st.lists(NUMBERS, min_size=SIZE, max_size=SIZE),
    st.sampled_from([[0.0] * SIZE, [1.0] * (SIZE - 1), [np.nan] * SIZE, [1.0, np.inf, 0.0]]),
)


class Servers(RuleBasedStateMachine):
    """Every call goes to both; `updates` are all that were ever sent, to be sent again."""

    updates = Bundle("updates")

    @initialize(buffers=st.booleans())
    def begin(self, buffers: bool) -> None:
        self.rule = (
            rules.fedbuff(buffer_size=BUFFER, initial_epochs=EPOCHS)
            if buffers
            else rules.asyncfeded(LAM, EPS, GAMMA_BAR, KAPPA, EPOCHS)
        )
        self.server = Server(np.zeros(SIZE, np.float32), self.rule)
        self.naive = NaiveServer(SIZE, buffers)
        self.tasks: dict[str, TrainTask] = {}

    @rule(name=NAMES)
    def join(self, name: str) -> None:
        if name not in self.naive.tasks:
            self.naive.next_task(name)
            self.gets(self.server.join(name))

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        if name in self.naive.tasks:
            del self.naive.tasks[name]
            assert self.server.leave(name) == ()

    @rule(name=NAMES)
    def lose_its_round(self, name: str) -> None:
        if name in self.naive.tasks:
            number = self.naive.tasks[name][1]
            self.naive.next_task(name)
            (task,) = self.server.lose_round(name, number, "suspended")
            self.gets(task)

    @rule(
        target=updates,
        name=NAMES,
        delta=DELTAS,
        examples=st.integers(0, 9),
        names_its_round=st.booleans(),
        times=st.integers(1, 2),
    )
    def train(
        self, name: str, delta: list[float], examples: int, names_its_round: bool, times: int
    ) -> Any:
        if name not in self.tasks:
            return multiple()
        task = self.tasks[name]
        vector, number = np.array(delta, np.float32), task.round if names_its_round else None
        update = ClientUpdate(name, task.version, vector, examples, task.epochs, number)
        for _ in range(times):
            self.receive(update)
        return update

    @rule(update=updates)
    def send_again(self, update: ClientUpdate) -> None:
        self.receive(update)

    @rule(update=updates, version=st.integers(-1, 9), number=st.integers(-1, 9))
    def send_nonsense(self, update: ClientUpdate, version: int, number: int) -> None:
        sent = update.client_id, version, update.delta, 1, 1, number
        self.receive(ClientUpdate(*sent))

    @precondition(lambda self: self.naive.rounds)
    @rule()
    def restart(self) -> None:
        saved = encode(tree_of(self.server.state()))
        self.server = Server.restore(server_state(decode(saved)), self.rule)

    @invariant()
    def both_are_the_same(self) -> None:
        if not hasattr(self, "server"):
            return
        server, naive = self.server, self.naive
        assert server.parameters.tobytes() == naive.models[-1].tobytes()
        assert (server.version, set(server.clients)) == (len(naive.models), set(naive.tasks))
        assert server.stored_versions == len(
            {version for version, _ in naive.tasks.values()} | {server.version}
        )

    def gets(self, task: TrainTask) -> None:
        """A client gets a task: that of the naive server."""
        name, naive = task.client_id, self.naive
        assert (task.version, task.round) == naive.tasks[name]
        assert task.epochs == naive.epochs.get(name, EPOCHS)
        assert task.parameters.tobytes() == naive.models[task.version - 1].tobytes()
        self.tasks[name] = task

    def receive(self, update: ClientUpdate) -> None:
        expected, receipt = self.naive.receive(update), self.server.receive(update)
        assert (receipt.reason, receipt.accepted) == (expected, expected is None)
        assert receipt.version == len(self.naive.models)
        if receipt.next_task is not None:
            self.gets(receipt.next_task)


TestServers = pytest.mark.slow(Servers.TestCase)
TestServers.settings = settings(max_examples=60, stateful_step_count=40)
