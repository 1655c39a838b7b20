"""A state that cannot follow from what the rule begins with is refused by name."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asyncfeded import PersistentMap, Server, StateError, rules
from asyncfeded.core.state import ServerState
from builders import answer, vector


def state_of(rule: Any) -> ServerState:
    server = Server(vector(1, 2), rule)
    server.receive(answer(server.join("a"), [1, 1]))
    return server.state()


@pytest.mark.parametrize(
    ("now", "problem"),
    [
        (None, None),
        ({"weighted_sum": np.zeros(2), "count": 1, "optimizer": None}, None),
        ({"weighted_sum": np.zeros(2), "count": 1}, "has count, weighted_sum, where the rule has"),
        ({"weighted_sum": 1.0, "count": 1, "optimizer": None}, "is a number, where .* of float64"),
        ({"weighted_sum": np.zeros(2, int), "count": 1, "optimizer": None}, "array of int64"),
        ({"weighted_sum": np.zeros(2), "count": "1", "optimizer": None}, "'count'] is a text"),
        (PersistentMap({"count": 1}), "is a map of clients, where the rule has a mapping"),
    ],
)
def test_names_and_kinds_of_a_rules_state_are_checked(now: Any, problem: str | None) -> None:
    state = state_of(rules.fedbuff())
    changed = replace(state, memory=replace(state.memory, now=now))
    if problem is None:
        assert Server.restore(changed, rules.fedbuff()).version == state.version
    else:
        with pytest.raises(StateError, match=f"damaged: rule 'fedbuff': its state.*{problem}"):
            Server.restore(changed, rules.fedbuff())
