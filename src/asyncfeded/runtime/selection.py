"""Who is at work, if not all clients are at once."""

from collections.abc import Sequence
from typing import Protocol


class Selection(Protocol):
    """Chooses the clients that get a task; as many stay at work as `first` returns."""

    def first(self) -> Sequence[str]:
        """The clients at work at the beginning, all different."""

    def after(self, client_id: str, seconds: float) -> str:
        """Who takes the place of a client that has reported: it again, or one that rests.

        `seconds` is the time of the run. Who is chosen while away begins when it is back.
        """
