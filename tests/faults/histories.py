"""Running histories one after the other, each from its own seed."""

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Protocol

from faults.chance import Chance
from faults.journal_history import JournalHistory
from faults.server_history import ServerHistory


class History(Protocol):
    """Real code against simulated parts, which fail as `chance` says."""

    chance: Chance

    def run(self) -> None:
        """Go through the history; raises if an invariant does not hold."""


LEVELS: dict[str, Callable[[int, bool], History]] = {
    "journal": JournalHistory,
    "server": ServerHistory,
}
"""What is real: the journal alone, or a durable server with its loop, rule and journal."""


class HistoryError(AssertionError):
    """A history failed; the message has the command that replays it."""


def replay(level: str, seed: int) -> Counter[str]:
    """Run one history and print every step of it."""
    return _run(level, seed, trace=True)


def run_until(
    level: str, first_seed: int, is_enough: Callable[[Counter[str], int], bool]
) -> tuple[Counter[str], int]:
    """Run histories until there are enough faults or histories; gives both."""
    faults: Counter[str] = Counter()
    for number in count():
        if is_enough(faults, number):
            return faults, number
        faults += _run(level, first_seed + number, trace=False)
    raise AssertionError


def _run(level: str, seed: int, trace: bool) -> Counter[str]:
    history = LEVELS[level](seed, trace)
    try:
        history.run()
    except Exception as error:
        raise HistoryError(
            f"{type(error).__name__}: {error}\n"
            f"replay it from the folder tests: python -m faults --level {level} --seed {seed}"
        ) from error
    return history.chance.faults
