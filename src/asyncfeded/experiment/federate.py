"""The one call: a torch module, the clients' data and a rule, run on a virtual or a real clock."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from asyncfeded import randomness
from asyncfeded.cluster.deadlines import PATIENCE
from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.history import SKETCH_BUCKETS, Keep, VersionHistory
from asyncfeded.core.metrics import ACCURACY
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.server import Server
from asyncfeded.core.vectors import Vector
from asyncfeded.data.federated import held_out as number_held_out
from asyncfeded.experiment.argument_kinds import check_kinds
from asyncfeded.experiment.limits import check_at_work, check_evaluations
from asyncfeded.experiment.result import ClientFigures, Result
from asyncfeded.experiment.worlds import On, Work, WorkersOn, ray_world, session, virtual_world
from asyncfeded.guards import bounded_staleness
from asyncfeded.learning.datasets import TensorExamples, as_examples
from asyncfeded.learning.evaluation import Evaluator, Metric
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.recipe import Kernel, TrainerRecipe
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.rounds import LocalTraining, batch_sizes
from asyncfeded.learning.saving import save_module
from asyncfeded.learning.trainer import Loss, OptimizerFactory
from asyncfeded.on_demand import ClientNames, OnDemand, each, names_of
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.control import Callback, Run
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.selection import Selection
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.profiles import heterogeneous_devices
from asyncfeded.simulation.selection import UniformSelection
from asyncfeded.store.log import EventLog

WHOLE = "all clients"
"""The name of a test set that belongs to no one client."""
KEPT_DATASETS = 256
"""How many clients' data are kept in memory where they are made on demand."""


def federate(
    module: nn.Module,
    datasets: Sequence[Any] | Mapping[str, Any],
    *,
    rule: AnyRule | None = None,
    test: Any = None,
    seconds: float = 60.0,
    suspension: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    at_work: int | None = None,
    selection: Selection | None = None,
    kernel: Kernel = "torch",
    training: LocalTraining | None = None,
    loss: Loss = nn.functional.cross_entropy,
    metrics: Mapping[str, Metric] | None = None,
    optimizers: Mapping[str, OptimizerFactory] | None = None,
    devices: DeviceModel | None = None,
    memberships: Sequence[Membership] | None = None,
    max_staleness: float | None = None,
    history: Keep = "leased",
    sketch_buckets: int = SKETCH_BUCKETS,
    evaluate_every: float = 2.0,
    on: On = "virtual",
    workers_on: WorkersOn = "here",
    ray_address: str | None = None,
    patience: float = PATIENCE,
    callbacks: Sequence[Callback] = (),
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Train `module` over `datasets` for some seconds and return what was measured.

    A data set is a torch Dataset of (input, target) or a pair (inputs, targets) of tensors or
    arrays; a list names its clients client-0, client-1, …, a mapping names them itself. Without
    `test`, a tenth of every client's examples is held out; `test` may be one data set, or one per
    client by name, which also gives these clients' own accuracy at the end. There may be any number
    of clients: a mapping that is no dict is asked for a client's data when they are needed, and
    `at_work` says how many clients are at work at once, drawn by the seed; a `selection` of your
    own draws otherwise. Several threads may ask for data at once. The module is left as the run has
    trained it. Without `devices`, clients have log-normal speeds and as much work as data, at least
    that of 32 examples, and hang between rounds with probability `suspension`. `metrics` names
    numbers to measure at every evaluation beside accuracy and loss: functions of the module's
    outputs on all test examples and their targets. Accuracy is measured where targets are classes;
    a metric named "accuracy" takes its place. `kernel="compiled"` trains a small
    module, a chain of fully connected layers, several times as fast as torch and alike up to
    rounding.

    The log is the same for any number of workers, unless `forward` changes plain attributes of the
    module: buffers and the global generators are set anew for every round, attributes cannot be.

    Time is virtual, unless `on="ray"`: then every client is a process of a Ray that is started on
    this machine, or of the cluster at `ray_address`, and the seconds are real. Clients are then as
    fast as their machines, or as the `devices` given, which are imposed on them. A client that
    takes `patience` times as long as is usual for it is started again. `workers_on="ray"` stays
    on the virtual clock and trains on the cluster, to the same bits.

    `callbacks` are functions of (event, run), told of everything that happens; `run.parameters` is
    the model, `run.stop()` ends the run, which then returns its result as usual. `asyncfeded` has
    some: StopAt, StopAfter, KeepBest, ClientCurves, Progress, EventLog.

    Anything else that ends a run early raises: an interrupt, an error of training, a callback that
    raises. The module is then left with the last version, and the error's attribute `result` has
    what was measured until then.
    """
    rule = asyncfeded() if rule is None else rule
    training = LocalTraining() if training is None else training
    check_kinds(locals())
    require(evaluate_every > 0, "evaluate_every", "above 0", evaluate_every)
    check_evaluations(seconds, evaluate_every)
    train, held_out = _clients(datasets, test, seed)
    make_evaluator = partial(Evaluator, deepcopy(module), held_out, loss, metrics)
    elsewhere = TrainerRecipe(deepcopy(module), train, training, loss, optimizers, seed, kernel)
    trainer = replace(elsewhere, module=module)()
    server = Server(
        trainer.initial,
        rule,
        guards=() if max_staleness is None else [bounded_staleness(max_staleness)],
        history=VersionHistory(history, sketch_buckets),
        trained=trainer.schema.trained,
        exact=trainer.schema.exact,
        population=len(train),
    )
    if devices is not None and suspension:
        raise SettingError(
            f"suspension must be set in devices where these are given; given {suspension} apart"
        )
    require(on in get_args(On), "on", "'virtual' or 'ray'", on)
    if on == "ray":
        require(at_work is None and selection is None, "at_work", "none on ray", at_work)
    sizes = each(train, len)
    if devices is None and on == "virtual":
        default = heterogeneous_devices(sizes, seed)
        devices = DeviceModel(default, seed=seed, suspension=suspension)
    if training.unit == "steps" and devices is not None:
        size = training.batch_size
        devices = devices.for_steps(each(sizes, lambda count: len(batch_sizes(count, size))))
    if at_work is not None:
        require(selection is None, "selection", "none where at_work is given", selection)
        selection = UniformSelection(names_of(train), at_work, seed)
    if selection is not None:
        require(memberships is None, "memberships", "none where not all are at work", memberships)
        memberships = [Membership(client_id) for client_id in selection.first()]
        require(len(memberships) > 0, "selection", "one that sets somebody to work", selection)
    elif memberships is None:
        check_at_work(len(train))
        memberships = [Membership(client_id) for client_id in train]
    result = Result(settings or {"rule": rule.name, **rule.settings, "seed": seed})
    result.kernel = trainer.kernel
    result.on = on
    if isinstance(sizes, dict):
        result.clients = {name: ClientFigures(examples=size) for name, size in sizes.items()}
    elif WHOLE not in held_out:
        result.clients = {name: ClientFigures() for name in held_out}
    work = Work(elsewhere, make_evaluator, memberships, seconds)
    world = ray_world(work, devices, patience)
    if on == "virtual":
        assert devices is not None
        world = virtual_world(work, devices, workers, workers_on, trainer.schema.size)
    control = Run(
        server, seconds, partial(_save, deepcopy(module)), _of_clients(make_evaluator, held_out)
    )
    logs = [callback for callback in callbacks if isinstance(callback, EventLog)]
    event_log = logs[0] if logs else EventLog()
    started = time.perf_counter()
    try:
        with (
            one_blas_thread(),
            session("ray" in (on, workers_on), ray_address),
            world as (transport, evaluate),
            ExitStack() as stack,
        ):
            for callback in callbacks:
                if isinstance(callback, AbstractContextManager):
                    stack.enter_context(callback)
            events = run(server, transport, seconds, evaluate, evaluate_every, selection, control)
            for event in events:
                if not logs:
                    event_log.write(event)
                result.add(event)
                for callback in callbacks:
                    callback(event, control)
    except BaseException as error:
        result.end_early(error)
        raise
    finally:
        result.versions = server.version
        result.log_sha256 = event_log.sha256
        result.wall_seconds = time.perf_counter() - started
        trainer.load(server.parameters)
    if WHOLE not in held_out:
        for name, measured in make_evaluator().of_each(server.parameters).items():
            result.clients[name].accuracy = measured.get(ACCURACY)
    return result


def _save(spare: nn.Module, parameters: Vector, path: Path) -> None:
    """Write parameters to a file, by way of a module that nothing else uses."""
    FlatModule(spare).load(parameters)
    save_module(spare, path)


def _of_clients(
    make_evaluator: Callable[[], Evaluator], held_out: Mapping[str, TensorExamples]
) -> Callable[[Vector], Mapping[str, Mapping[str, float]]] | None:
    """Measures parameters on the test examples of each client, if clients have their own."""
    if WHOLE in held_out:
        return None
    evaluator = cache(make_evaluator)
    return lambda parameters: evaluator().of_each(parameters)


def _clients(
    datasets: Sequence[Any] | Mapping[str, Any], test: Any, seed: int
) -> tuple[dict[str, TensorExamples] | OnDemand[TensorExamples], dict[str, TensorExamples]]:
    """The training examples and the test examples of every client."""
    if not isinstance(datasets, Mapping):
        datasets = dict(zip(ClientNames(len(datasets)), datasets, strict=True))
    require(len(datasets) > 0, "datasets", "at least one data set", datasets)
    train = each(datasets, as_examples, KEPT_DATASETS)
    if isinstance(test, Mapping):
        for name in test:
            if name not in train:
                raise SettingError(f"test must name clients of datasets; {name!r} is none")
        return train, {name: as_examples(own) for name, own in test.items()}
    if test is not None:
        return train, {WHOLE: as_examples(test)}
    if not isinstance(train, dict):
        raise SettingError(
            "test must be given where the clients' data are made on demand, as by a mapping that "
            "is no dict; given none"
        )
    held_out = {}
    for name, examples in train.items():
        if len(examples) < 2:
            raise SettingError(
                f"client {name!r} must have at least 2 examples to hold one out; "
                f"given {len(examples)}: pass test=… instead"
            )
        order = randomness.generator(seed, "test-split", name).permutation(len(examples))
        indices = torch.from_numpy(order)
        count = number_held_out(len(examples))
        held_out[name] = TensorExamples(examples.x[indices[:count]], examples.y[indices[:count]])
        train[name] = TensorExamples(examples.x[indices[count:]], examples.y[indices[count:]])
    return train, held_out
