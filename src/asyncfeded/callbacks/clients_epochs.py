"""K of the clients that take part, kept up to date from the events."""

from collections import Counter
from collections.abc import Sequence
from math import ceil
from threading import Lock

from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Event, Joined, Left, Received, Replaced, Resumed, Started


class ClientsEpochs:
    """K of each client, and how many clients have each K; any thread may read it during a run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of_client: dict[str, int] = {}
        self._clients_with: Counter[int] = Counter()
        self._total = 0

    def note(self, event: Event, run: Run) -> None:
        """Note who joins, leaves or is given another K."""
        match event:
            case Started() | Resumed():
                with self._lock:
                    self._of_client = run.epochs
                    self._clients_with = Counter(self._of_client.values())
                    self._total = sum(self._of_client.values())
            case Joined():
                self._set(event.client_id, event.epochs)
            case Replaced():
                self._set(event.client_id, None)
                self._set(event.successor, event.epochs)
            case Left():
                self._set(event.client_id, None)
            case Received(receipt=receipt):
                for task in receipt.tasks:
                    self._set(task.client_id, task.epochs)
            case _:
                pass

    @property
    def clients(self) -> int:
        """How many clients take part."""
        return len(self._of_client)

    @property
    def mean(self) -> float:
        """The mean K; 0 if nobody takes part."""
        return self._total / max(1, len(self._of_client))

    def quantiles(self, shares: Sequence[float]) -> list[int]:
        """For each share, the K that this share of the clients has at most; 0.5 is the median.

        Empty if nobody takes part.
        """
        with self._lock:
            clients_with = sorted(self._clients_with.items())
            clients = len(self._of_client)
        if not clients:
            return []
        found = []
        for share in shares:
            reached = 0
            for epochs, number in clients_with:
                reached += number
                if reached >= max(1, ceil(share * clients)):
                    found.append(epochs)
                    break
        return found

    def _set(self, client_id: str, epochs: int | None) -> None:
        before = self._of_client.get(client_id)
        if epochs == before:
            return
        with self._lock:
            if before is not None:
                del self._of_client[client_id]
                self._total -= before
                self._clients_with[before] -= 1
                if not self._clients_with[before]:
                    del self._clients_with[before]
            if epochs is not None:
                self._of_client[client_id] = epochs
                self._total += epochs
                self._clients_with[epochs] += 1
