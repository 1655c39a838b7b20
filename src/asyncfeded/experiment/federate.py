"""The one call: a torch module, the clients' data and a rule, run on the virtual clock."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.history import Keep, VersionHistory
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.server import Server
from asyncfeded.data.federated import client_names
from asyncfeded.data.federated import held_out as number_held_out
from asyncfeded.experiment.result import ClientFigures, Result
from asyncfeded.guards import bounded_staleness
from asyncfeded.learning.datasets import TensorExamples, as_examples
from asyncfeded.learning.evaluation import Correct, Evaluator, highest_score_is_right
from asyncfeded.learning.trainer import (
    LocalTraining,
    Loss,
    OptimizerFactory,
    TorchTrainer,
    batch_sizes,
)
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.events import Event
from asyncfeded.runtime.loop import Evaluation, Measure, run
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.profiles import heterogeneous_devices
from asyncfeded.simulation.transport import Membership, VirtualTransport
from asyncfeded.simulation.workers import make_workers
from asyncfeded.store.log import EventLog

WHOLE = "all clients"
"""The name of a test set that belongs to no one client."""


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
    training: LocalTraining | None = None,
    loss: Loss = nn.functional.cross_entropy,
    correct: Correct = highest_score_is_right,
    optimizers: Mapping[str, OptimizerFactory] | None = None,
    devices: DeviceModel | None = None,
    memberships: Sequence[Membership] | None = None,
    max_staleness: float | None = None,
    history: Keep = "leased",
    evaluate_every: float = 2.0,
    log: Path | None = None,
    on_event: Callable[[Event], None] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Train `module` over `datasets` for `seconds` of virtual time and return what was measured.

    A data set is a torch Dataset of (input, target) or a pair (inputs, targets) of tensors or
    arrays; a list names its clients client-0, client-1, …, a mapping names them itself. Without
    `test`, a tenth of every client's examples is held out; `test` may be one data set, or one per
    client by name, which also gives every client's own accuracy at the end. The module is left as
    the run has trained it. Without `devices`, clients have log-normal speeds and as much work as
    data, and hang between rounds with probability `suspension`. `correct` says which answers are
    right, given the module's output and the targets; by default the class of the highest score.
    """
    rule = asyncfeded() if rule is None else rule
    training = LocalTraining() if training is None else training
    require(evaluate_every > 0, "evaluate_every", "above 0", evaluate_every)
    train, held_out = _clients(datasets, test, seed)
    trainer = TorchTrainer(module, train, training, loss, optimizers, seed)
    evaluator = Evaluator(deepcopy(module), held_out, loss, correct)
    server = Server(
        trainer.initial,
        rule,
        guards=() if max_staleness is None else [bounded_staleness(max_staleness)],
        history=VersionHistory(history),
        trained=trainer.schema.trained,
    )
    if devices is not None and suspension:
        raise SettingError(
            f"suspension must be set in devices where these are given; given {suspension} apart"
        )
    if devices is None:
        sizes = [len(examples) for examples in train.values()]
        default = heterogeneous_devices(list(train), sizes, seed)
        devices = DeviceModel(default, seed=seed, suspension=suspension)
    if training.unit == "steps":
        size = training.batch_size
        devices = devices.for_steps({n: len(batch_sizes(len(e), size)) for n, e in train.items()})
    if memberships is None:
        memberships = [Membership(client_id) for client_id in train]
    result = Result(settings or {"rule": rule.name, **rule.settings, "seed": seed})
    result.clients = {name: ClientFigures(examples=len(own)) for name, own in train.items()}
    started = time.perf_counter()
    with (
        EventLog(log) as event_log,
        closing(make_workers(trainer, workers, trainer.schema.size, _measure(evaluator))) as pool,
    ):
        transport = VirtualTransport(devices, pool, memberships, seconds)
        for event in run(server, transport, seconds, pool.evaluate, evaluate_every):
            event_log.write(event)
            result.add(event)
            if on_event is not None:
                on_event(event)
        result.log_sha256 = event_log.sha256
    result.wall_seconds = time.perf_counter() - started
    trainer.load(server.parameters)
    if set(held_out) == set(train):
        for name, accuracy in evaluator.of_each(server.parameters).items():
            result.clients[name].accuracy = accuracy
    return result


def _measure(evaluator: Evaluator) -> Measure:
    return lambda parameters: Evaluation(*evaluator(parameters))


def _clients(
    datasets: Sequence[Any] | Mapping[str, Any], test: Any, seed: int
) -> tuple[dict[str, TensorExamples], dict[str, TensorExamples]]:
    """The training examples and the test examples of every client."""
    if not isinstance(datasets, Mapping):
        datasets = dict(zip(client_names(len(datasets)), datasets, strict=True))
    require(len(datasets) > 0, "datasets", "at least one data set", datasets)
    train = {name: as_examples(dataset) for name, dataset in datasets.items()}
    if isinstance(test, Mapping):
        for name in {*test} ^ {*train}:
            raise SettingError(f"test must name the clients of datasets; {name!r} is in only one")
        return train, {name: as_examples(test[name]) for name in train}
    if test is not None:
        return train, {WHOLE: as_examples(test)}
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
