"""What the transport remembers of a client: whether it is there, its task, and its failures."""

from dataclasses import dataclass

from asyncfeded.core.messages import TrainTask

MOST_FAILURES = 5
"""A client leaves after this many failures in a row, without an update between them …"""
REST_SECONDS = 300.0
"""… and joins again after so long, if its node is still there."""
FIRST_PAUSE_SECONDS = 1.0
"""How long a client rests after a failure; after every further one, twice as long."""


@dataclass(slots=True)
class Client:
    """A client that has had a node in this run.

    `task` is what it was sent, or what is kept for it until its pause is over; `last_round` is the
    last of its rounds that began so. `answered` is the message that it has answered last, with the
    round and the version of this.
    """

    here: bool = False
    task: TrainTask | None = None
    kept: bool = False
    last_round: int = -1
    failures: int = 0
    pause_until: float = 0.0
    answered: tuple[str, int, int] | None = None

    def failed(self, now: float) -> bool:
        """Note a failure, and pause; returns whether there were too many in a row."""
        self.failures += 1
        self.task = None
        if self.failures >= MOST_FAILURES:
            self.failures = 0
            self.pause_until = now + REST_SECONDS
            return True
        self.pause_until = now + FIRST_PAUSE_SECONDS * 2 ** (self.failures - 1)
        return False

    def left(self) -> None:
        """Note that it is gone."""
        self.here, self.task, self.kept = False, None, False
