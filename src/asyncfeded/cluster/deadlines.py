"""How long a client may take before it is given up.

A client's own past says what is usual for it: the longest of its last rounds, per epoch, times
the epochs of the round at hand. It is allowed `patience` times that. Like a network's
retransmission timer, the allowance doubles with every miss until the client answers again: one
that has become slow is not killed for ever.
"""

from collections import defaultdict, deque

from asyncfeded.core.errors import require

PATIENCE = 5.0
FIRST_SECONDS = 300.0
"""The allowance of a client that has not been heard yet."""
LEAST_SECONDS = 10.0
"""What every client is allowed, however short its rounds: a busy machine can stop for seconds."""
REMEMBERED_ROUNDS = 10
MOST_DOUBLINGS = 6


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
        self._seconds_per_epoch: dict[str, deque[float]] = {}
        self._misses: defaultdict[str, int] = defaultdict(int)

    def allowance(self, client_id: str, epochs: int) -> float:
        """How many seconds this client may take for so many epochs."""
        known = self._seconds_per_epoch.get(client_id)
        usual = self._first_seconds if known is None else self._patience * max(known) * epochs
        return max(usual, self._least_seconds) * 2.0 ** self._misses[client_id]

    def answered(self, client_id: str, epochs: int, seconds: float) -> None:
        """Learn from a round."""
        known = self._seconds_per_epoch.setdefault(client_id, deque(maxlen=REMEMBERED_ROUNDS))
        known.append(seconds / max(1, epochs))
        self._misses[client_id] = 0

    def missed(self, client_id: str) -> None:
        """Be more patient with this client from now on."""
        self._misses[client_id] = min(self._misses[client_id] + 1, MOST_DOUBLINGS)
