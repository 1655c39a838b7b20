"""Servers of all kinds: any rule, any way to keep versions, models of a sector or of several."""

from inspect import signature
from random import Random

import numpy as np

from asyncfeded import Server, rules
from asyncfeded.callbacks.checkpoint import SavedRun
from asyncfeded.core.history import Keep, VersionHistory
from asyncfeded.core.rule import AnyRule
from asyncfeded.store.states import server_state

SMALL = {"initial_epochs": 3, "buffer_size": 3}
BUCKETS = 8


class AnySetup:
    """What is drawn once for a history: the rule, the model and how its versions are kept.

    Of the model's `size` elements, `trained` are trained and the last `whole` are whole numbers.
    """

    def __init__(self, random: Random) -> None:
        factory = rules.REGISTRY[random.choice(list(rules.REGISTRY))]
        known = signature(factory).parameters
        self.rule: AnyRule = factory(**{k: v for k, v in SMALL.items() if k in known})
        self.size = random.choice((random.randint(4, 16), random.randint(200, 400)))
        self.trained = random.choice((self.size, random.randint(2, self.size)))
        self.whole = random.choice((0, random.randint(0, self.size - self.trained)))
        kinds: tuple[Keep, ...] = ("leased", "everything")
        if not self.rule.reads_base:
            kinds = (*kinds, "sketch")
        self.keep = random.choice(("leased", *kinds))

    def __str__(self) -> str:
        return f"{self.rule.name}, {self.size} elements, {self.trained} trained, {self.keep}"

    def new_server(self) -> Server:
        """A server that nobody has joined."""
        return Server(
            np.zeros(self.size, np.float32),
            self.rule,
            history=VersionHistory(self.keep, BUCKETS),
            trained=self.trained,
            exact=self.whole,
        )

    def restored(self, saved: SavedRun) -> Server:
        """The server of a saved run."""
        return Server.restore(server_state(saved.state["server"]), self.rule)
