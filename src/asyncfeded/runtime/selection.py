"""Which clients are at work, where not all are at once."""

from collections.abc import Sequence
from typing import Protocol


class Selection(Protocol):
    """Chooses the clients that get a task; as many stay at work as `first` returns."""

    def first(self) -> Sequence[str]:
        """The clients at work at the beginning, all different."""

    def after(self, client_id: str, seconds: float) -> str:
        """The client that takes the place of one that has reported: the same, or one at rest.

        `seconds` is the time of the run. A client that is chosen while away begins when it is back.
        """
