"""How long a client may take before it is given up.

A client's own past says what is usual for it: the longest training of its last rounds, per epoch,
times the epochs of the round at hand, and the longest that all else took (transfers, waiting for
a turn). It is allowed `patience` times that. Like a network's retransmission timer, the allowance
doubles with every miss until the client answers again, so a client that has become slow is not
killed again and again.
"""

from collections import deque
from dataclasses import dataclass, field

from asyncfeded.core.errors import require

PATIENCE = 5.0
FIRST_SECONDS = 300.0
"""The allowance of a client before its first answer."""
LEAST_SECONDS = 10.0
"""What every client is allowed, however short its rounds: a busy machine can stop for seconds."""
REMEMBERED_ROUNDS = 10


def _recent() -> deque[float]:
    return deque(maxlen=REMEMBERED_ROUNDS)


@dataclass(slots=True)
class _Past:
    """What is known of a client."""

    seconds_per_epoch: deque[float] = field(default_factory=_recent)
    seconds_apart: deque[float] = field(default_factory=_recent)
    misses: int = 0


class Deadlines:
    """The allowance of each client, learned from its rounds."""

    def __init__(
        self,
        patience: float = PATIENCE,
        first_seconds: float = FIRST_SECONDS,
        least_seconds: float = LEAST_SECONDS,
    ) -> None:
        require(patience >= 1, "patience", "at least 1", patience)
        self._patience = patience
        self._first_seconds = first_seconds
        self._least_seconds = least_seconds
        self._pasts: dict[str, _Past] = {}

    def allowance(self, client_id: str, epochs: int) -> float:
        """How many seconds this client may take for this many epochs."""
        past = self._pasts.get(client_id)
        if past is None or not past.seconds_per_epoch:
            usual = self._first_seconds
        else:
            training = max(past.seconds_per_epoch) * epochs
            usual = self._patience * (training + max(past.seconds_apart))
        return max(usual, self._least_seconds) * 2.0 ** (0 if past is None else past.misses)

    def answered(self, client_id: str, epochs: int, training: float, apart: float) -> None:
        """Learn from a round: the seconds of its training, and of all else."""
        past = self._pasts.setdefault(client_id, _Past())
        past.seconds_per_epoch.append(training / max(1, epochs))
        past.seconds_apart.append(max(0.0, apart))
        past.misses = 0

    def missed(self, client_id: str) -> None:
        """Be more patient with this client from now on."""
        self._pasts.setdefault(client_id, _Past()).misses += 1
