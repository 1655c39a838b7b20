"""Ray as a world, in real time, and Ray as the place of a virtual world's workers.

Ray itself is loaded when a world is opened.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from inspect import isclass
from typing import TYPE_CHECKING, ClassVar

from asyncfeded.availability.availability import Availability
from asyncfeded.availability.away import attendance, while_there
from asyncfeded.cluster.address import check_address
from asyncfeded.core.arguments import require_kind, require_list, require_number, require_whole
from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.messages import TrainTask
from asyncfeded.runtime.deadlines import PATIENCE, Deadlines
from asyncfeded.runtime.devices import Devices, for_unit
from asyncfeded.runtime.limits import check_at_work
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.world import Clock, OpenWorld, Setup

if TYPE_CHECKING:
    from asyncfeded.cluster.ray_transport import Delays
    from asyncfeded.cluster.workers import RayWorkerPool


@dataclass(frozen=True, slots=True)
class Ray:
    """Time is real: every client is a process on Ray.

    Without `address`, a Ray is started on this machine and ended with the run; otherwise the run
    joins the cluster there. Clients are as fast as their machines, or as slow as `devices` where
    these are given. A client that takes more than `patience` times its usual time is started
    again. `memberships` say who joins late or leaves, `availability` when each client is there. Who
    goes away loses its round; only with `devices` can the round end later instead.
    """

    address: str | None = None
    devices: Devices | None = None
    memberships: Sequence[Membership] | None = None
    patience: float = PATIENCE
    availability: Availability | None = None

    clock: ClassVar[Clock] = "real"

    def __post_init__(self) -> None:
        require_number("patience", self.patience)
        require(self.patience >= 1, "patience", "at least 1", self.patience)
        check_address("address", self.address)
        if self.devices is not None:
            right = hasattr(self.devices, "round_time") and not isclass(self.devices)
            require_kind(right, "devices", "a DeviceModel", self.devices)
        if self.memberships is not None:
            require_list("memberships", Membership, "a list of Membership", self.memberships)
        availability = self.availability
        if availability is not None:
            right = isinstance(availability, Availability)
            require_kind(right, "availability", "an Availability", availability)
            if availability.when_away == "later" and self.devices is None:
                raise SettingError(
                    "when_away must be 'lose' on Ray where no devices are imposed: a process "
                    "cannot be stopped in the middle of a round; given 'later'"
                )

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to the cluster, or to a Ray of our own."""
        from asyncfeded.cluster.session import ray_session

        return ray_session(self.address)

    @contextmanager
    def open(self, setup: Setup) -> Iterator[OpenWorld]:
        """Start a process per client; the clock starts when all are ready."""
        limit = "a Virtual one where clients train on a GPU"
        require(not setup.recipe.only_here, "world", limit, self)
        memberships = self.memberships
        if memberships is None:
            check_at_work(len(setup.sizes))
            memberships = [Membership(client_id) for client_id in setup.sizes]
        memberships, presence = attendance(memberships, self.availability)
        with self.connection():
            from asyncfeded.cluster.ray_transport import RayTransport
            from asyncfeded.cluster.workers import RayWorkerPool

            of_client = setup.recipe.of_client
            names = dict.fromkeys(membership.client_id for membership in memberships)
            clients = {name: of_client(name).warmed_up for name in names}
            with closing(RayWorkerPool(None, 1, setup.make_measure, cpus=0)) as measuring:
                transport = RayTransport(
                    clients,
                    setup.seconds,
                    memberships=memberships,
                    delays=self._delays(setup),
                    deadlines=Deadlines(self.patience),
                    presence=presence,
                    begins=setup.begins,
                )
                with closing(transport):
                    yield OpenWorld(transport, measuring.evaluate)

    def _delays(self, setup: Setup) -> "Delays | None":
        """What a client's device takes for a task, as its process imposes it on itself."""
        if self.devices is None:
            return None
        from asyncfeded.cluster.processes import Imposed

        machines = for_unit(self.devices, setup.steps_per_epoch)
        machines = while_there(machines, self.availability, setup.seconds)

        def imposed(task: TrainTask, begins: float) -> Imposed:
            name, size = task.client_id, task.parameters.nbytes
            time = machines.round_time(name, task.round, task.epochs, size, begins)
            before, after = time.download, time.upload
            if time.lost:
                after += time.hangs
            else:
                before += time.hangs
            # An endless time cannot be slept; to the end of the run is enough.
            before, compute, after = (min(s, setup.seconds) for s in (before, time.compute, after))
            return Imposed(before, compute, after, time.lost)

        return imposed


@dataclass(frozen=True, slots=True)
class RayWorkers:
    """This many workers of a virtual world, on a Ray: `Virtual(workers=RayWorkers(32, address))`.

    Without `address`, the Ray is started on this machine. Each worker asks for `cpus` of the
    cluster; without, for the largest share at which all workers fit.
    """

    number: int
    address: str | None = None
    cpus: float | None = None

    def __post_init__(self) -> None:
        require_whole("number", self.number)
        require(self.number >= 1, "number", "at least 1", self.number)
        check_address("address", self.address)

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to the cluster, or to a Ray of our own."""
        from asyncfeded.cluster.session import ray_session

        return ray_session(self.address)

    def start(self, setup: Setup) -> "RayWorkerPool":
        """Start the workers."""
        from asyncfeded.cluster.workers import RayWorkerPool

        return RayWorkerPool(setup.recipe, self.number, setup.make_measure, self.cpus)
