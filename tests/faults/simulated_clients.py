"""Clients that go on whatever happens, and the messages between them and their server.

A client says what it has to say again and again until it is answered, or begins anew. It comes and
goes, sometimes without a word, is paused, and sends what no server can use.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

import numpy as np

from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.transport import Arriving, Joining, Leaving, Losing
from faults.chance import Chance

RATES = {
    "client paused": 0.05,
    "client left": 0.01,
    "client lost": 0.02,
    "client gone for good": 0.1,
    "client began anew": 0.05,
    "round lost": 0.05,
    "garbage sent": 0.05,
}
PATIENCE_ENDS = 0.3
MOST_REPEATED = 5
"""Who is not answered so many times begins anew: its server may think that it has left."""
LONGEST_PAUSE = 40
MOST_GONE = 2

Message = Joining | Arriving | Losing | Leaving | TrainTask
"""What is under way; the seconds of a signal are those of its arrival."""


def client_of(message: Message) -> str:
    """Who sends a message, or gets it."""
    return message.update.client_id if isinstance(message, Arriving) else message.client_id


@dataclass(slots=True)
class Client:
    """A client, as it sees itself; `told` is the newest round that it was given."""

    name: str
    doing: Literal["away", "asking", "training", "waiting"] = "away"
    task: TrainTask | None = None
    sent: ClientUpdate | None = None
    told: int = -1
    paused: int = 0
    is_gone: bool = False
    repeated: int = 0
    tasks: int = 0

    def take(self, task: TrainTask) -> None:
        """Begin with a task, unless it is an old one."""
        if self.doing != "away" and task.round > self.told:
            self.task, self.told, self.doing = task, task.round, "training"
            self.tasks += 1


@dataclass(slots=True)
class Clients:
    """All clients of a history. `say` takes what they send."""

    chance: Chance
    size: int
    whole: int
    say: Callable[[Message], None]
    names: Sequence[str]
    all: dict[str, Client] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.all = {name: Client(name) for name in self.names}

    @property
    def living(self) -> list[Client]:
        """Those who want to go on."""
        return [client for client in self.all.values() if not client.is_gone]

    def act(self) -> None:
        """Let one of them do something."""
        chance, random = self.chance, self.chance.random
        client = random.choice(self.living)
        if chance.enabled:
            if client.paused > 0:
                client.paused -= 1
                return
            if chance.strikes("client paused"):
                client.paused = random.randrange(LONGEST_PAUSE)
                return
            if chance.strikes("garbage sent"):
                self.say(Arriving(0.0, self._garbage(client, random), 1.0))
            if client.doing != "away" and self._goes(client):
                return
        match client.doing:
            case "away":
                self._ask(client)
            case "asking":
                if not chance.enabled or random.random() < PATIENCE_ENDS:
                    self._ask(client)
            case "training":
                self._end_round(client)
            case "waiting":
                if chance.strikes("client began anew") or client.repeated == MOST_REPEATED:
                    self._ask(client)
                elif not chance.enabled or random.random() < PATIENCE_ENDS:
                    client.repeated += 1
                    self._send(client)

    def server_restarts(self) -> list[str]:
        """Some notice it and ask to take part again; some are gone for good: gives their names."""
        lost = []
        for client in self.living:
            gone = len(self.all) - len(self.living)
            if gone < min(MOST_GONE, len(self.all) - 1) and self.chance.strikes(
                "client gone for good"
            ):
                client.is_gone, client.doing = True, "away"
                lost.append(client.name)
            elif client.doing != "away" and self.chance.random.random() < 0.5:
                self._ask(client)
        return lost

    def _goes(self, client: Client) -> bool:
        """Whether it leaves; if it is lost without a word, the transport notices it or not."""
        if self.chance.strikes("client left"):
            self.say(Leaving(0.0, client.name))
        elif self.chance.strikes("client lost"):
            if self.chance.random.random() < 0.5:
                self.say(Leaving(0.0, client.name, "process lost"))
        else:
            return False
        client.doing, client.task = "away", None
        return True

    def _ask(self, client: Client) -> None:
        client.doing, client.sent, client.repeated = "asking", None, 0
        self.say(Joining(0.0, client.name))

    def _end_round(self, client: Client) -> None:
        task, random = client.task, self.chance.random
        assert task is not None
        client.doing, client.repeated = "waiting", 0
        if self.chance.strikes("round lost"):
            client.sent = None
        else:
            client.sent = ClientUpdate(
                client_id=client.name,
                version=task.version,
                delta=self._delta(random),
                num_examples=random.randint(1, 100),
                epochs=task.epochs,
                round=task.round if random.random() < 0.9 else None,
                steps=random.choice((None, 7)),
                figures=random.choice(({}, {"loss": random.random()})),
            )
        self._send(client)

    def _send(self, client: Client) -> None:
        if client.sent is not None:
            self.say(Arriving(0.0, client.sent, self.chance.random.random()))
        else:
            self.say(Losing(0.0, client.name, client.told))

    def _delta(self, random: Random) -> Vector:
        delta = np.array([random.gauss(0.0, 1.0) for _ in range(self.size)], np.float32)
        if self.whole:
            delta[-self.whole :] = random.randrange(3)
        return delta

    def _garbage(self, client: Client, random: Random) -> ClientUpdate:
        """What the server must refuse, or may take: an old version, a wrong size, no numbers."""
        delta = self._delta(random)
        match random.randrange(5):
            case 0:
                delta[random.randrange(self.size)] = random.choice((np.nan, np.inf, 3e38))
            case 1:
                delta = delta[1:]
            case 2:
                delta = np.zeros(self.size, np.float32)
            case _:
                pass
        return ClientUpdate(
            client_id=random.choice((client.name, client.name, "nobody", "")),
            version=random.randint(-1, 30),
            delta=delta,
            num_examples=random.choice((1, 0, -5, 2**60)),
            epochs=random.choice((1, 0, 2**70)),
            round=random.choice((None, client.told, client.told - 1, client.told + 1, -1)),
            steps=random.choice((None, 0, 3)),
        )
