"""Who is at work, where not everybody is at once."""

from collections.abc import Sequence
from typing import Protocol


class Selection(Protocol):
    """Chooses who is given a task. The number at work stays what `first` has made it."""

    def first(self) -> Sequence[str]:
        """Those who are set to work at the beginning: different clients."""

    def after(self, client_id: str) -> str:
        """Who takes the place of a client that has reported: it again, or one that rests."""
