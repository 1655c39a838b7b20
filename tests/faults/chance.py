"""Decides from a seed what fails, and counts every fault."""

from collections import Counter
from random import Random


class InvariantError(AssertionError):
    """An invariant that did not hold."""


class Chance:
    """What happens in one history; all its simulated parts share it.

    `rates` is the probability of each fault whenever it could happen. With a `trace`, everything
    that happens is printed.
    """

    def __init__(self, seed: int, rates: dict[str, float], trace: bool = False) -> None:
        self.random = Random(seed)  # noqa: S311 - a simulation, no secret
        self.rates = rates
        self.faults: Counter[str] = Counter()
        self.enabled = True
        self.is_traced = trace

    def strikes(self, fault: str) -> bool:
        """Whether this fault happens now; it is counted if it does."""
        if not self.enabled or self.random.random() >= self.rates.get(fault, 0.0):
            return False
        self.count(fault)
        return True

    def count(self, fault: str) -> None:
        """Note a fault."""
        self.faults[fault] += 1
        self.tell("fault:", fault)

    def subset(self, size: int) -> list[bool]:
        """Which of so many things happen: all, none, the first, all but one or any."""
        random = self.random
        match random.randrange(5):
            case 0:
                return [True] * size
            case 1:
                return [False] * size
            case 2:
                first = random.randint(0, size)
                return [place < first for place in range(size)]
            case 3:
                missing = random.randrange(size)
                return [place != missing for place in range(size)]
            case _:
                return [random.random() < 0.5 for _ in range(size)]

    def tell(self, *what: object) -> None:
        """Print a step of the history if it is traced."""
        if self.is_traced:
            print(*what)
