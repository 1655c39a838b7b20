"""Ray as a world, in real time, and Ray as the place of a virtual world's workers.

Ray itself is loaded when a world is opened.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from asyncfeded.cluster.deadlines import PATIENCE, Deadlines
from asyncfeded.core.arguments import require_kind, require_list, require_number, require_whole
from asyncfeded.core.errors import require
from asyncfeded.core.messages import TrainTask
from asyncfeded.runtime.devices import Devices, for_unit
from asyncfeded.runtime.limits import check_at_work
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.world import Clock, OpenWorld, Setup

if TYPE_CHECKING:
    from asyncfeded.cluster.transport import Delays
    from asyncfeded.cluster.workers import RayWorkerPool


@dataclass(frozen=True, slots=True)
class Ray:
    """Time is real: every client is a process of a Ray.

    Without `address`, a Ray is started on this machine and ended with the run; otherwise the run
    joins the cluster there. Clients are as fast as their machines, or as slow as `devices` where
    these are given. A client that takes `patience` times as long as is usual for it is started
    again. `memberships` say who joins late or leaves.
    """

    address: str | None = None
    devices: Devices | None = None
    memberships: Sequence[Membership] | None = None
    patience: float = PATIENCE

    clock: ClassVar[Clock] = "real"

    def __post_init__(self) -> None:
        require_number("patience", self.patience)
        require(self.patience >= 1, "patience", "at least 1", self.patience)
        require_kind(_is_address(self.address), "address", "HOST:PORT, or none", self.address)
        if self.devices is not None:
            right = hasattr(self.devices, "round_time")
            require_kind(right, "devices", "a DeviceModel", self.devices)
        if self.memberships is not None:
            require_list("memberships", Membership, "a list of Membership", self.memberships)

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to the cluster, or to a Ray of our own."""
        from asyncfeded.cluster.session import ray_session

        return ray_session(self.address)

    @contextmanager
    def open(self, setup: Setup) -> Iterator[OpenWorld]:
        """Start a process per client; the clock starts when all are ready."""
        memberships = self.memberships
        if memberships is None:
            check_at_work(len(setup.sizes))
            memberships = [Membership(client_id) for client_id in setup.sizes]
        with self.connection():
            from asyncfeded.cluster.transport import RayTransport
            from asyncfeded.cluster.workers import RayWorkerPool

            of_client = setup.recipe.of_client
            clients = {m.client_id: of_client(m.client_id).warmed_up for m in memberships}
            with closing(RayWorkerPool(None, 1, setup.make_measure, cpus=0)) as measuring:
                transport = RayTransport(
                    clients,
                    setup.seconds,
                    memberships=memberships,
                    delays=None if self.devices is None else _delays(self.devices, setup),
                    deadlines=Deadlines(self.patience),
                )
                with closing(transport):
                    yield OpenWorld(transport, measuring.evaluate)


@dataclass(frozen=True, slots=True)
class RayWorkers:
    """This many workers of a virtual world, on a Ray: `Virtual(workers=RayWorkers(32, address))`.

    Without `address`, the Ray is started on this machine. Each worker asks for `cpus` of the
    cluster; without, for the largest share with which all fit in.
    """

    number: int
    address: str | None = None
    cpus: float | None = None

    def __post_init__(self) -> None:
        require_whole("number", self.number)
        require(self.number >= 1, "number", "at least 1", self.number)
        require_kind(_is_address(self.address), "address", "HOST:PORT, or none", self.address)

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to the cluster, or to a Ray of our own."""
        from asyncfeded.cluster.session import ray_session

        return ray_session(self.address)

    def start(self, setup: Setup) -> "RayWorkerPool":
        """Start the workers."""
        from asyncfeded.cluster.workers import RayWorkerPool

        return RayWorkerPool(setup.recipe, self.number, setup.make_measure, self.cpus)


def _is_address(value: object) -> bool:
    return value is None or isinstance(value, str)


def _delays(devices: Devices, setup: Setup) -> "Delays":
    """What a client's device takes for a task, as its process imposes it on itself."""
    from asyncfeded.cluster.processes import Imposed

    devices = for_unit(devices, setup.steps_per_epoch)

    def imposed(task: TrainTask) -> Imposed:
        time = devices.round_time(task.client_id, task.round, task.epochs, task.parameters.nbytes)
        if time.lost:
            return Imposed(time.download, time.compute, time.upload + time.hangs, lost=True)
        return Imposed(time.download + time.hangs, time.compute, time.upload)

    return imposed
