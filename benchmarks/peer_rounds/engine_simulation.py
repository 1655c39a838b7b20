"""This project's engine on its virtual clock, with an event log."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from asyncfeded.core.errors import SettingError
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.server import Server
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.trainer import TorchTrainer
from asyncfeded.on_demand import ClientNames, OnDemand
from asyncfeded.rules import fedasync, fedbuff
from asyncfeded.runtime.devices import RoundTime
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.selection import UniformSelection
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import make_workers
from asyncfeded.store.log import EventLog
from peer_rounds.simulated import Arrived, Simulation, UnavailableError, Work

ENDLESS_UNITS = 1e15


class Speeds:
    """Devices that take as many units as the work says."""

    def __init__(self, work: Work, names: ClientNames) -> None:
        self._work, self._names = work, names

    def round_time(
        self,
        client_id: str,
        round_number: int,  # noqa: ARG002 - every round takes as long
        epochs: int,  # noqa: ARG002
        num_bytes: int,  # noqa: ARG002
        begins: float,  # noqa: ARG002
    ) -> RoundTime:
        units = self._work.units_of(self._names.index(client_id))
        return RoundTime(0.0, 0.0, units, 0.0)


def rule_of(work: Work) -> AnyRule:
    if work.rule == "fedbuff":
        return fedbuff(work.buffer_size, initial_epochs=work.steps)
    match work.rule:
        case "fedasync-constant":
            return fedasync(work.alpha, "constant", initial_epochs=work.steps)
        case "fedasync-hinge":
            return fedasync(work.alpha, "hinge", work.a, work.b, work.steps)
        case "fedasync-polynomial":
            return fedasync(work.alpha, "polynomial", work.a, initial_epochs=work.steps)


def adding(constant: float) -> Train:
    """Add a constant to the parameters, and send the difference, as after training."""

    def train(task: TrainTask) -> ClientUpdate:
        trained = task.parameters + np.float32(constant)
        trained -= task.parameters
        return ClientUpdate(task.client_id, task.version, trained, 1, task.epochs, task.round)

    return train


class Events:
    """A run whose events are taken one by one."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._names = ClientNames(work.clients)
        self._received = self._run()

    def _run(self) -> Iterator[Received]:
        work, names = self._work, self._names

        def examples(name: str) -> TensorExamples:
            return TensorExamples(*work.data_of(names.index(name)))

        datasets = OnDemand(names, examples, keep=256)
        training = LocalTraining(
            learning_rate=work.learning_rate,
            momentum=work.momentum,
            decay=1.0,
            batch_size=work.batch_size,
            unit="steps",
        )
        module = work.make_module()
        trainer: TorchTrainer | CompiledTrainer
        if work.compiled:
            try:
                trainer = CompiledTrainer(module, datasets, training)
            except SettingError as error:
                raise UnavailableError(str(error)) from None
        else:
            trainer = TorchTrainer(module, datasets, training, work.loss)
        train = trainer if work.constant is None else adding(work.constant)
        selection = None
        if work.at_work < work.clients:
            selection = UniformSelection(names, work.at_work)
        first = names if selection is None else selection.first()
        self._server = Server(trainer.initial, rule_of(work))
        log = EventLog()
        with one_blas_thread():
            workers = make_workers(
                train,
                work.workers,
                trainer.schema.size,
                kind="threads" if work.compiled else "processes",
            )
            transport = VirtualTransport(
                Speeds(work, names), workers, [Membership(name) for name in first], ENDLESS_UNITS
            )
            for event in run(self._server, transport, ENDLESS_UNITS, selection=selection):
                log.write(event)
                if isinstance(event, Received):
                    assert event.receipt.accepted
                    yield event

    def updates(self, count: int) -> int:
        for _ in range(count):
            next(self._received)
        return count

    def next_arrival(self) -> Arrived:
        event = next(self._received)
        return Arrived(event.seconds, (self._names.index(event.receipt.client_id),))

    def parameters(self) -> Tensor:
        return torch.from_numpy(self._server.parameters.copy())


def simulation(work: Work) -> Simulation:
    return Events(work)
