"""The virtual clock as a world: `federate(..., world=Virtual(workers=2))`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from inspect import isclass
from numbers import Integral
from typing import ClassVar, Protocol

from asyncfeded.availability.availability import Availability
from asyncfeded.availability.away import attendance, while_there
from asyncfeded.core.arguments import (
    require_kind,
    require_list,
    require_number,
    require_whole,
)
from asyncfeded.core.errors import SettingError, require
from asyncfeded.on_demand import names_of
from asyncfeded.runtime.devices import Devices, for_unit
from asyncfeded.runtime.limits import check_at_work
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.saved import Saved, restoring, savable
from asyncfeded.runtime.selection import Selection
from asyncfeded.runtime.world import Clock, OpenWorld, Setup
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.profiles import heterogeneous_devices
from asyncfeded.simulation.selection import UniformSelection
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import Kind, Workers, make_workers


class WorkersElsewhere(Protocol):
    """Workers on other machines, such as `asyncfeded.RayWorkers`."""

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to those machines."""

    def start(self, setup: Setup) -> Workers:
        """Start the workers."""


@dataclass(frozen=True, slots=True)
class Virtual:
    """Time is virtual: devices say how long a round takes, and training waits for nobody.

    Without `devices`, clients have log-normal speeds, and an epoch takes longer the more examples a
    client has; fewer than 32 count as 32. `suspension` is then the probability P that a round is
    lost and its client hangs. This many `workers` train at once, on this machine's cores or, as
    `RayWorkers(32, address)`, on a cluster; their number changes no result. With `at_work`, this
    many clients work at once, drawn by the seed; a `selection` of your own draws in another way.
    `memberships` say who joins late or leaves, `availability` when each client is there.
    """

    devices: Devices | None = None
    suspension: float = 0.0
    workers: int | WorkersElsewhere = 1
    at_work: int | None = None
    selection: Selection | None = None
    memberships: Sequence[Membership] | None = None
    availability: Availability | None = None

    clock: ClassVar[Clock] = "virtual"

    def __post_init__(self) -> None:
        if not hasattr(self.workers, "start"):
            require_whole("workers", self.workers)
            require(self.workers >= 1, "workers", "at least 1", self.workers)
        require_number("suspension", self.suspension)
        if self.devices is not None:
            right = hasattr(self.devices, "round_time") and not isclass(self.devices)
            require_kind(right, "devices", "a DeviceModel", self.devices)
            apart = "0 where devices are given, which have their own"
            require(not self.suspension, "suspension", apart, self.suspension)
        if self.memberships is not None:
            require_list("memberships", Membership, "a list of Membership", self.memberships)
        if self.availability is not None:
            right = isinstance(self.availability, Availability)
            require_kind(right, "availability", "an Availability", self.availability)
        if self.selection is not None:
            right = hasattr(self.selection, "first") and hasattr(self.selection, "after")
            right = right and not isclass(self.selection)
            require_kind(right, "selection", "a Selection", self.selection)
            require(
                self.at_work is None, "at_work", "none where a selection is given", self.at_work
            )
        if self.at_work is not None or self.selection is not None:
            limit = "none where not all clients are at work"
            require(self.memberships is None, "memberships", limit, self.memberships)

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to where the workers are."""
        workers = self.workers
        return nullcontext() if isinstance(workers, int | Integral) else workers.connection()

    @contextmanager
    def open(self, setup: Setup) -> Iterator[OpenWorld]:
        """Start the clock at 0."""
        devices = self._devices(setup)
        selection, memberships = self._clients(setup.sizes, setup.seed)
        devices = while_there(devices, self.availability, setup.seconds, selection)
        memberships, presence = attendance(memberships, self.availability, selection)
        saved = setup.resumed
        with self.connection(), closing(self._start_workers(setup)) as workers:
            with restoring("virtual clock"):
                if saved is not None and (line := savable(selection)) is not None:
                    line.restore(saved["selection"])
                came = None if saved is None else saved["transport"]
                transport = VirtualTransport(
                    devices, workers, memberships, setup.seconds, presence, came
                )

            def state() -> Saved:
                return {"transport": transport.state(), "selection": _state_of(selection)}

            yield OpenWorld(transport, workers.evaluate, selection, state)

    def _devices(self, setup: Setup) -> Devices:
        devices = self.devices
        if devices is None:
            usual = heterogeneous_devices(setup.sizes, setup.seed)
            devices = DeviceModel(usual, seed=setup.seed, suspension=self.suspension)
        return for_unit(devices, setup.steps_per_epoch)

    def _clients(
        self, sizes: Mapping[str, int], seed: int
    ) -> tuple[Selection | None, Sequence[Membership]]:
        """Who draws the clients at work, if somebody does, and who begins."""
        selection = self.selection
        if self.at_work is not None:
            selection = UniformSelection(names_of(sizes), self.at_work, seed, self.availability)
        if selection is not None:
            first = [Membership(client_id) for client_id in selection.first()]
            require(len(first) > 0, "selection", "one that sets somebody to work", selection)
            return selection, first
        if self.memberships is not None:
            return None, self.memberships
        check_at_work(len(sizes))
        return None, [Membership(client_id) for client_id in sizes]

    def _start_workers(self, setup: Setup) -> Workers:
        fits = self.workers == 1 or not setup.recipe.only_here
        require(fits, "workers", "1 where clients train on a GPU", self.workers)
        workers = self.workers
        if not isinstance(workers, int | Integral):
            return workers.start(setup)
        kind: Kind = "threads" if setup.recipe.in_threads else "processes"
        return make_workers(
            setup.recipe(), int(workers), setup.num_parameters, setup.make_measure(), kind
        )


def _state_of(selection: Selection | None) -> Saved | None:
    if selection is None:
        return None
    line = savable(selection)
    if line is None:
        raise SettingError(
            "selection must have state() and restore(state) in a run with checkpoints; given "
            f"{type(selection).__name__}"
        )
    return line.state()
