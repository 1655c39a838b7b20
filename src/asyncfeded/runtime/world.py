"""A world: where clients train, and whose clock tells the time."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from asyncfeded.core.messages import Train
from asyncfeded.runtime.evaluation import Evaluate, Measure
from asyncfeded.runtime.saved import Saved
from asyncfeded.runtime.selection import Selection
from asyncfeded.runtime.transport import Transport

Clock = Literal["virtual", "real"]


class Recipe(Protocol):
    """Makes trainers; it can travel to another process."""

    @property
    def in_threads(self) -> bool:
        """Whether trainers run side by side in threads, rather than in processes."""

    @property
    def only_here(self) -> bool:
        """Whether trainers must stay in this process, as those that use its GPU."""

    def __call__(self) -> Train:
        """Make a trainer of all clients."""

    def warmed_up(self) -> Train:
        """Make a trainer whose code is loaded and compiled."""

    def of_client(self, client_id: str) -> "Recipe":
        """The same for one client, without the data of the others."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a world is given: who trains what, for how long.

    `sizes` has every client's number of examples. Where K counts mini-batches, `steps_per_epoch`
    says how many an epoch has. `resumed` is the state of a run that goes on, and `begins` the time
    at which it does.
    """

    recipe: Recipe
    make_measure: Callable[[], Measure]
    sizes: Mapping[str, int]
    steps_per_epoch: Mapping[str, int] | None
    num_parameters: int
    seconds: float
    seed: int
    resumed: Saved | None = None
    begins: float = 0.0


class OpenWorld(NamedTuple):
    """A world as the loop sees it; without a selection every client is at work.

    Without `evaluate`, nothing is measured. `state` gives what the world needs to go on in another
    process.
    """

    transport: Transport
    evaluate: Evaluate | None
    selection: Selection | None = None
    state: Callable[[], Saved] = dict


class World(Protocol):
    """Where a run happens. `asyncfeded.Virtual` and `asyncfeded.Ray` are worlds."""

    @property
    def clock(self) -> Clock:
        """Whether seconds are virtual or real."""

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to the machines that the world needs; several runs may share this."""

    def open(self, setup: Setup) -> AbstractContextManager[OpenWorld]:
        """Make the world ready for a run; the transport is closed with it."""
