"""This project's engine: AsyncFedED at constant K on the virtual clock, with a log."""

from collections.abc import Iterator

from torch import nn

from asyncfeded.core.errors import SettingError
from asyncfeded.core.server import Server
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.trainer import TorchTrainer
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import Kind, make_workers
from asyncfeded.store.log import EventLog
from asyncfeded.tasks.registry import find_task
from peer_rounds.protocol import Rounds, claim_stdout, parser, serve, unavailable
from peer_rounds.workload import (
    BATCH,
    CLIENTS,
    LEARNING_RATE,
    MOMENTUM,
    STEPS,
    client_data,
    make_module,
)

TASKS = {"mlp": "synthetic-1-1", "cnn": "femnist-standin", "lstm": "shakespeare-standin"}
TRAINING = LocalTraining(
    learning_rate=LEARNING_RATE, momentum=MOMENTUM, decay=1.0, batch_size=BATCH, unit="steps"
)
ENDLESS_SECONDS = 1e12


class UnavailableError(Exception):
    """There is no such row in this installation, or for this workload."""


def make_trainer(
    kernel: str, module: nn.Module, datasets: dict[str, TensorExamples]
) -> TorchTrainer | CompiledTrainer:
    """What trains a client's round: PyTorch's eager operations, or compiled code."""
    if kernel == "eager":
        return TorchTrainer(module, datasets, TRAINING)
    try:
        return CompiledTrainer(module, datasets, TRAINING)
    except SettingError as error:
        raise UnavailableError(str(error)) from None


def project_module(workload: str) -> nn.Module:
    """The project's own model, which must be what the peers train."""
    task = find_task(TASKS[workload])
    module = task.make_module(task.widths)
    ours = [parameter.shape for parameter in module.parameters()]
    theirs = [parameter.shape for parameter in make_module(workload).parameters()]
    assert ours == theirs, f"the peers' model differs from ours: {theirs}, not {ours}"
    return module


def updates(workload: str, kernel: str, workers: int) -> Iterator[None]:
    """An endless run, update by update."""
    datasets = {
        f"client-{client}": TensorExamples(*client_data(workload, client))
        for client in range(CLIENTS)
    }
    trainer = make_trainer(kernel, project_module(workload), datasets)
    server = Server(trainer.initial, asyncfeded(kappa=0.0, initial_epochs=STEPS))
    devices = DeviceModel({name: Device(0.1, 0.1 * STEPS) for name in datasets})
    kind: Kind = "threads" if isinstance(trainer, CompiledTrainer) else "processes"
    members = [Membership(name) for name in datasets]
    log = EventLog()
    with one_blas_thread():
        pool = make_workers(trainer, workers, trainer.schema.size, kind=kind)
        transport = VirtualTransport(devices, pool, members, ENDLESS_SECONDS)
        for event in run(server, transport, ENDLESS_SECONDS):
            log.write(event)
            if isinstance(event, Received):
                assert event.receipt.accepted
                assert event.epochs == STEPS
                yield


def engine_rounds(workload: str, kernel: str, workers: int) -> Rounds:
    arrived = updates(workload, kernel, workers)

    def rounds(count: int) -> int:
        for _ in range(count):
            next(arrived)
        return count

    return rounds


def main() -> None:
    options = parser()
    options.add_argument("--kernel", choices=("eager", "compiled"), required=True)
    options.add_argument("--workers", type=int, required=True)
    arguments = options.parse_args()
    answers = claim_stdout()
    rounds = engine_rounds(arguments.workload, arguments.kernel, arguments.workers)
    note = "1 thread each" if arguments.workers > 1 else "1 thread"
    try:
        serve(answers, rounds, note, lead_in=CLIENTS)
    except UnavailableError as error:
        unavailable(answers, str(error))


if __name__ == "__main__":
    main()
