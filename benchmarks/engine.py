"""What the engine costs, as ratios measured in one run.

    python benchmarks/engine.py [--seconds 6] [--repeats 12]

One workload, AsyncFedED on Synthetic-1-1 with the paper's settings, is carried out in turn by

    engine, 1 worker     all in this process; training is timed apart from the rest
    engine, 2 workers    look-ahead training on two processes
    plain loop           the same rounds in the same order, in eager PyTorch as a tutorial has it:
                         nn.Module, torch.optim.SGD, a shuffled index per epoch, every version kept
                         in a list, the server's rule in three lines, one thread

one after the other, as often as `--repeats` says. Each ratio is taken within a repeat; the median
is reported, and the machine's noise shows in the range.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from asyncfeded import randomness
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.server import Server
from asyncfeded.data.federated import FederatedData
from asyncfeded.experiment.tasks import Task, find_task
from asyncfeded.learning.datasets import TensorExamples, as_examples, join
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.trainer import TorchTrainer, batch_sizes
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.loop import Evaluation, run
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.profiles import BYTES_PER_SECOND, paper_devices
from asyncfeded.simulation.transport import Membership, VirtualTransport
from asyncfeded.simulation.workers import make_workers
from asyncfeded.store.log import EventLog


def machine_scaling(trainer: TorchTrainer) -> float:
    """How much faster two processes that share nothing do the same training as one."""
    context = multiprocessing.get_context("fork")

    def train(rounds: int) -> None:
        for _ in range(rounds):
            trainer(TrainTask("client-3", 1, trainer.initial, epochs=3))

    def seconds(processes: int) -> float:
        started = time.perf_counter()
        running = [context.Process(target=train, args=(8 // processes,)) for _ in range(processes)]
        for process in running:
            process.start()
        for process in running:
            process.join()
        return time.perf_counter() - started

    return seconds(1) / seconds(2)


class Assignment(NamedTuple):
    """What a client was told to do, in the order of arrival."""

    client_id: str
    version: int
    epochs: int
    round: int


class TimedTrainer:
    """A trainer that adds up the time spent in it, and notes the tasks it was given."""

    def __init__(self, train: TorchTrainer) -> None:
        self._train = train
        self.seconds = 0.0
        self.tasks: list[Assignment] = []

    def __call__(self, task: TrainTask) -> ClientUpdate:
        started = time.perf_counter()
        update = self._train(task)
        self.seconds += time.perf_counter() - started
        self.tasks.append(Assignment(task.client_id, task.version, task.epochs, task.round))
        return update


class Workload:
    """AsyncFedED on Synthetic-1-1 at P = 0.1 for so many virtual seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.task: Task = find_task("synthetic-1-1")
        self.data: FederatedData = self.task.make_data(10, 1)
        self.train = {n: as_examples((e.x, e.y)) for n, e in self.data.train.items()}
        self.test = join([as_examples((e.x, e.y)) for e in self.data.test.values()])

    def module(self) -> nn.Module:
        with reproducible(randomness.key(0, "initial-model")):
            return self.task.make_module()

    def engine(self, workers: int) -> tuple[float, TimedTrainer, str]:
        """Wall seconds, the trainer with its times (one worker only), and the log's digest."""
        trainer = TorchTrainer(self.module(), self.train, self.task.training)
        timed = TimedTrainer(trainer)
        evaluate = Evaluator(self.module(), self.test)
        server = Server(trainer.initial, asyncfeded())
        devices = DeviceModel(
            paper_devices("paper-synthetic", list(self.train)),
            suspension=0.1,
            bytes_per_second=BYTES_PER_SECOND,
        )
        log = EventLog()
        started = time.perf_counter()
        transport = VirtualTransport(
            devices,
            make_workers(timed if workers == 1 else trainer, workers, trainer.initial.size),
            [Membership(name) for name in self.train],
            self.seconds,
        )
        for event in run(server, transport, self.seconds, lambda p: Evaluation(*evaluate(p))):
            log.write(event)
        return time.perf_counter() - started, timed, log.sha256

    def plain_loop(self, tasks: list[Assignment]) -> float:
        """Wall seconds of the same training, aggregation and evaluation in plain PyTorch."""
        module = self.module()
        training = self.task.training
        parameters = list(module.parameters())
        versions = [parameters_to_vector(parameters).detach()]
        every = max(1, round(2.0 * len(tasks) / self.seconds))
        torch.set_num_threads(1)
        started = time.perf_counter()
        for count, task in enumerate(tasks):
            base = versions[task.version - 1]
            vector_to_parameters(base, parameters)
            rate = training.rate(task.round, 0)
            optimizer = torch.optim.SGD(parameters, lr=rate, momentum=training.momentum)
            eager_round(
                module, optimizer, self.train[task.client_id], task.epochs, training.batch_size
            )
            with torch.no_grad():
                delta = parameters_to_vector(parameters) - base
                staleness = torch.linalg.vector_norm(versions[-1] - base)
                staleness = staleness / torch.linalg.vector_norm(delta)
                versions.append(versions[-1] + 5.0 / (staleness.item() + 5.0) * delta)
                if count % every == 0:
                    vector_to_parameters(versions[-1], parameters)
                    (module(self.test.x).argmax(dim=1) == self.test.y).double().mean().item()
        return time.perf_counter() - started


def eager_round(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    examples: TensorExamples,
    epochs: int,
    batch_size: int,
) -> None:
    for _ in range(epochs):
        order = torch.randperm(len(examples))
        start = 0
        for size in batch_sizes(len(examples), batch_size):
            batch = order[start : start + size]
            start += size
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(examples.x[batch]), examples.y[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def spread(values: list[float], form: Callable[[float], str]) -> str:
    return f"{form(statistics.median(values))}  ({form(min(values))} to {form(max(values))})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="virtual seconds per run")
    parser.add_argument("--repeats", type=int, default=12)
    arguments = parser.parse_args()
    workload = Workload(arguments.seconds)
    workload.engine(workers=1)  # warm up
    overheads, speedups, limits, against_plain, rates = [], [], [], [], []
    trainer = TorchTrainer(workload.module(), workload.train, workload.task.training)
    digests = set()
    for _ in range(arguments.repeats):
        one, trained, digest_one = workload.engine(workers=1)
        two, _, digest_two = workload.engine(workers=2)
        limits.append(machine_scaling(trainer))
        plain = workload.plain_loop(trained.tasks)
        digests |= {digest_one, digest_two}
        overheads.append((one - trained.seconds) / one)
        speedups.append(one / two)
        against_plain.append(plain / one)
        rates.append(len(trained.tasks) / one)
    ratio = "{:.2f} ×".format
    print(
        f"AsyncFedED, Synthetic-1-1, {arguments.seconds:g} virtual s, {len(trained.tasks)} updates"
    )
    print("                                    median  (range over repeats)")
    print(f"engine overhead, 1 worker           {spread(overheads, '{:.1%}'.format)}")
    print(f"2 workers against 1                 {spread(speedups, ratio)}")
    print(f"  two processes sharing nothing     {spread(limits, ratio)}")
    print(f"1 worker against the plain loop     {spread(against_plain, ratio)}")
    print(f"updates/s with 1 worker             {spread(rates, '{:.0f}'.format)}")
    print(f"logs of all runs identical          {'yes' if len(digests) == 1 else 'NO'}")


if __name__ == "__main__":
    main()
