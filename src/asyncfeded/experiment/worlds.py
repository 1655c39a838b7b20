"""The worlds that a run can happen in: the virtual clock, or Ray in real time.

Each gives the loop a transport and an evaluation; nothing else of a run depends on where it is.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from typing import Literal, NamedTuple

from asyncfeded.core.errors import SettingError
from asyncfeded.core.messages import TrainTask
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.recipe import TrainerRecipe
from asyncfeded.runtime.evaluation import Evaluate, Evaluation, Measure
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.transport import Transport
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.transport import VirtualTransport
from asyncfeded.simulation.workers import Workers, make_workers

On = Literal["virtual", "ray"]
WorkersOn = Literal["here", "ray"]

MakeEvaluator = Callable[[], Evaluator]


class World(NamedTuple):
    """Where a run happens, as the loop sees it."""

    transport: Transport
    evaluate: Evaluate


class Work(NamedTuple):
    """What is to be done in a world: training and measuring, by whom and for how long."""

    recipe: TrainerRecipe
    make_evaluator: MakeEvaluator
    memberships: Sequence[Membership]
    seconds: float


def session(on_ray: bool, address: str | None) -> AbstractContextManager[None]:
    """Be connected to a Ray, where one is needed."""
    if not on_ray:
        return nullcontext()
    from asyncfeded.cluster.session import ray_session

    return ray_session(address)


@contextmanager
def virtual_world(
    work: Work, devices: DeviceModel, workers: int, workers_on: WorkersOn, size: int
) -> Iterator[World]:
    """The virtual clock, with training ahead of time here or on Ray."""
    with closing(_workers(work, workers, workers_on, size)) as pool:
        transport = VirtualTransport(devices, pool, work.memberships, work.seconds)
        yield World(transport, pool.evaluate)


def _workers(work: Work, workers: int, workers_on: WorkersOn, size: int) -> Workers:
    make_measure = partial(measure_of, work.make_evaluator)
    if workers_on == "ray":
        from asyncfeded.cluster.workers import RayWorkers

        return RayWorkers(work.recipe, workers, make_measure)
    if workers_on != "here":
        raise SettingError(f"workers_on must be 'here' or 'ray'; given {workers_on!r}")
    kind: Literal["threads", "processes"] = (
        "threads" if work.recipe.kernel == "compiled" else "processes"
    )
    return make_workers(work.recipe(), workers, size, make_measure(), kind)


@contextmanager
def ray_world(work: Work, devices: DeviceModel | None, patience: float) -> Iterator[World]:
    """Processes of Ray's in real time; devices, where given, are imposed on them."""
    from asyncfeded.cluster.deadlines import Deadlines
    from asyncfeded.cluster.processes import Imposed
    from asyncfeded.cluster.transport import RayTransport
    from asyncfeded.cluster.workers import RayWorkers

    def imposed(task: TrainTask) -> Imposed:
        assert devices is not None
        time = devices.round_time(task.client_id, task.round, task.epochs, task.parameters.nbytes)
        if time.lost:
            return Imposed(time.download, time.compute, time.upload + time.hangs, lost=True)
        return Imposed(time.download + time.hangs, time.compute, time.upload)

    make_measure = partial(measure_of, work.make_evaluator)
    clients = {m.client_id: work.recipe.of_client(m.client_id).warmed_up for m in work.memberships}
    with closing(RayWorkers(None, 1, make_measure, cpus=0)) as measuring:
        transport = RayTransport(
            clients,
            work.seconds,
            memberships=work.memberships,
            delays=None if devices is None else imposed,
            deadlines=Deadlines(patience),
        )
        with closing(transport):
            yield World(transport, measuring.evaluate)


def measure_of(make_evaluator: MakeEvaluator) -> Measure:
    """An evaluation as the loop asks for it."""
    evaluator = make_evaluator()
    return lambda parameters: Evaluation(evaluator(parameters))
