"""What the engine costs, as ratios measured in one run.

    python benchmarks/engine.py [--task synthetic-1-1] [--kernel auto] [--seconds 6] [--repeats 12]

One workload, AsyncFedED on a task with the paper's settings, is carried out in turn by

    engine, 1 worker     all in this process; training and evaluation are timed apart
    engine, 2 workers    look-ahead training on two processes, or threads if it is compiled
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

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from asyncfeded import randomness
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.server import Server
from asyncfeded.core.vectors import Vector
from asyncfeded.experiment.run import as_tensors, load_data, resolve
from asyncfeded.experiment.settings import run_settings
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples, join
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.reproducible import one_blas_thread, reproducible
from asyncfeded.learning.rounds import batch_sizes
from asyncfeded.learning.trainer import TorchTrainer
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.profiles import BYTES_PER_SECOND, paper_devices
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import Kind, make_workers
from asyncfeded.store.log import EventLog
from asyncfeded.tasks.paper_task import RunnableTask
from asyncfeded.tasks.registry import find_task


def machine_scaling(trainer: TorchTrainer | CompiledTrainer) -> float:
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


class Stopwatch:
    """Seconds that are added up over all threads or, if told so, processes forked from this one.

    A lock that processes share costs 7 to 10 µs after a round, which would be taken for the
    engine's; it is used where rounds are long.
    """

    def __init__(self, across_processes: bool) -> None:
        context = multiprocessing.get_context("fork")
        self._shared = context.Value("d", 0.0) if across_processes else None
        self._spans: list[float] = []  # one more is appended in one go: threads need no lock

    def add(self, seconds: float) -> None:
        if self._shared is None:
            self._spans.append(seconds)
            return
        with self._shared.get_lock():
            self._shared.value += seconds

    @property
    def seconds(self) -> float:
        return sum(self._spans) if self._shared is None else float(self._shared.value)


class TimedEvaluator:
    """An evaluator that adds up the time spent in it."""

    def __init__(self, evaluate: Evaluator, stopwatch: Stopwatch) -> None:
        self._evaluate = evaluate
        self.time = stopwatch

    def __call__(self, parameters: Vector) -> Evaluation:
        started = time.perf_counter()
        evaluation = Evaluation(self._evaluate(parameters))
        self.time.add(time.perf_counter() - started)
        return evaluation


class TimedTrainer:
    """A trainer that adds up the time spent in it and, in this process, notes its tasks."""

    def __init__(self, train: Train, stopwatch: Stopwatch) -> None:
        self._train = train
        self.time = stopwatch
        self.tasks: list[Assignment] = []

    def __call__(self, task: TrainTask) -> ClientUpdate:
        started = time.perf_counter()
        update = self._train(task)
        self.time.add(time.perf_counter() - started)
        self.tasks.append(Assignment(task.client_id, task.version, task.epochs, task.round))
        return update


class EngineTimes(NamedTuple):
    """What a run of the engine took, and what all its workers spent on what."""

    wall: float
    training: float
    evaluation: float
    tasks: list[Assignment]
    digest: str


class Workload:
    """AsyncFedED on a task at P = 0.1 for so many virtual seconds."""

    def __init__(self, task: str, seconds: float, kernel: str) -> None:
        self.seconds = seconds
        self.task: RunnableTask = find_task(task)
        self.settings = self.task.rule_settings["asyncfeded"]
        settings = run_settings({"task": task, "kernel": kernel})
        self.kernel = resolve(settings).training.kernel
        data = load_data(settings)
        self.train = {name: as_tensors(examples) for name, examples in data.train.items()}
        self.tests = {name: as_tensors(examples) for name, examples in data.test.items()}
        self.test = join(list(self.tests.values()))

    def module(self) -> nn.Module:
        with reproducible(randomness.key(0, "initial-model")):
            return self.task.make_module(self.task.widths)

    def trainer(self) -> TorchTrainer | CompiledTrainer:
        kind = CompiledTrainer if self.kernel == "compiled" else TorchTrainer
        return kind(self.module(), self.train, self.task.training)

    def engine(self, workers: int) -> EngineTimes:
        trainer = self.trainer()
        kind: Kind = "threads" if self.kernel == "compiled" else "processes"
        forks = kind == "processes" and workers > 1
        timed = TimedTrainer(trainer, Stopwatch(forks))
        evaluate = TimedEvaluator(Evaluator(self.module(), self.tests), Stopwatch(forks))
        server = Server(trainer.initial, asyncfeded(**self.settings))
        devices = DeviceModel(
            paper_devices(self.task.paper_devices, list(self.train)),
            suspension=0.1,
            bytes_per_second=BYTES_PER_SECOND,
        )
        log = EventLog()
        started = time.perf_counter()
        pool = make_workers(timed, workers, trainer.initial.size, evaluate, kind)
        members = [Membership(name) for name in self.train]
        transport = VirtualTransport(devices, pool, members, self.seconds)
        with one_blas_thread():
            for event in run(server, transport, self.seconds, pool.evaluate):
                log.write(event)
        wall = time.perf_counter() - started
        spent = timed.time.seconds, evaluate.time.seconds
        return EngineTimes(wall, *spent, timed.tasks, log.sha256)

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
            vector_to_parameters(base.clone(), parameters)
            eager_round(module, self.train[task.client_id], task, training)
            with torch.no_grad():
                delta = parameters_to_vector(parameters) - base
                staleness = torch.linalg.vector_norm(versions[-1] - base)
                staleness = staleness / torch.linalg.vector_norm(delta)
                scale = self.settings["lam"] / (staleness.item() + self.settings["eps"])
                versions.append(versions[-1] + scale * delta)
                if count % every == 0:
                    vector_to_parameters(versions[-1].clone(), parameters)
                    (module(self.test.x).argmax(dim=1) == self.test.y).double().mean().item()
        return time.perf_counter() - started


def eager_round(
    module: nn.Module, examples: TensorExamples, task: Assignment, training: LocalTraining
) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0, momentum=training.momentum)
    draw = np.random.default_rng(0)
    step = 0
    for epoch in range(task.epochs):
        order = torch.from_numpy(examples.order(draw))
        start = 0
        for size in batch_sizes(len(examples), training.batch_size):
            batch = order[start : start + size]
            start += size
            optimizer.param_groups[0]["lr"] = training.rate(task.round, epoch, step)
            step += 1
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(examples.x[batch]), examples.y[batch])
            loss.backward()
            optimizer.step()


def spread(values: list[float], form: Callable[[float], str]) -> str:
    return f"{form(statistics.median(values))}  ({form(min(values))} to {form(max(values))})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--task", default="synthetic-1-1", help="also femnist-standin, shakespeare-standin, …"
    )
    parser.add_argument("--kernel", default="auto", choices=["auto", "torch", "compiled"])
    parser.add_argument("--seconds", type=float, default=6.0, help="virtual seconds per run")
    parser.add_argument("--repeats", type=int, default=12)
    arguments = parser.parse_args()
    workload = Workload(arguments.task, arguments.seconds, arguments.kernel)
    workload.engine(workers=1)  # warm up
    overheads, evaluations, speedups, limits = [], [], [], []
    ideal, shares, against_plain, two_against_plain, rates = [], [], [], [], []
    trainer = workload.trainer()
    digests = set()
    for _ in range(arguments.repeats):
        one = workload.engine(workers=1)
        two = workload.engine(workers=2)
        limits.append(machine_scaling(trainer))
        plain = workload.plain_loop(one.tasks)
        digests |= {one.digest, two.digest}
        overheads.append((one.wall - one.training - one.evaluation) / one.wall)
        evaluations.append(one.evaluation / one.wall)
        speedups.append(one.wall / two.wall)
        ideal.append(two.wall / (two.training / 2))
        shares.append(two.training / (2 * two.wall))
        against_plain.append(plain / one.wall)
        two_against_plain.append(plain / two.wall)
        rates.append(len(one.tasks) / two.wall)
    ratio, percent = "{:.2f} ×".format, "{:.1%}".format
    print(
        f"AsyncFedED, {arguments.task}, kernel {workload.kernel}, "
        f"{arguments.seconds:g} virtual s, {len(one.tasks)} updates"
    )
    print("                                    median  (range over repeats)")
    print(f"engine overhead, 1 worker           {spread(overheads, percent)}")
    print(f"evaluation, 1 worker                {spread(evaluations, percent)}")
    print(f"2 workers against 1                 {spread(speedups, ratio)}")
    print(f"  two processes sharing nothing     {spread(limits, ratio)}")
    print(f"2 workers: both cores in training   {spread(shares, percent)}")
    print(f"  wall against training time / 2    {spread(ideal, ratio)}")
    print(f"1 worker against the plain loop     {spread(against_plain, ratio)}")
    print(f"2 workers against the plain loop    {spread(two_against_plain, ratio)}")
    print(f"updates/s with 2 workers            {spread(rates, '{:.1f}'.format)}")
    print(f"logs of all runs identical          {'yes' if len(digests) == 1 else 'NO'}")


if __name__ == "__main__":
    main()
