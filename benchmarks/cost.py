"""Where the time of an update goes, and how it grows with clients, parameters, K and P.

    python benchmarks/cost.py [--updates 1500] [--repeats 5]

AsyncFedED on Synthetic-1-1, one worker, compiled training, K fixed: ten clients of 60 examples
each, ten epochs a round, P = 0.1, the task's model of 33,310 parameters. One of these is changed at
a time. The table has microseconds per update: training, the server (`Server.receive`), the devices'
draws and the clock (`send`), the log, and the rest of the loop. Rows are taken in turn, as often as
`--repeats` says; medians are shown.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from asyncfeded import randomness
from asyncfeded.core.messages import ClientUpdate, Receipt, Train, TrainTask
from asyncfeded.core.server import Server
from asyncfeded.data.published_synthetic import CLASSES, FEATURES
from asyncfeded.data.synthetic import synthetic
from asyncfeded.experiment.run import as_tensors
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.models import mlp
from asyncfeded.learning.reproducible import one_blas_thread, reproducible
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.profiles import BYTES_PER_SECOND
from asyncfeded.simulation.virtual_transport import VirtualTransport
from asyncfeded.simulation.workers import InProcess
from asyncfeded.store.log import EventLog

Result = TypeVar("Result")
PARTS = ("training", "server", "send", "log", "loop")
EPOCH_SECONDS = 0.01
USUAL: Mapping[str, Any] = {
    "clients": 10,
    "hidden": (200, 100),
    "epochs": 10,
    "suspension": 0.1,
}
CASES: Mapping[str, Mapping[str, Any]] = {
    "as above": {},
    "2 clients at work": {"clients": 2},
    "100 clients at work": {"clients": 100},
    "1,000 clients at work": {"clients": 1000},
    "10 × 10 hidden: 830 parameters": {"hidden": (10, 10)},
    "1,000 × 400 hidden: 465,410": {"hidden": (1000, 400)},
    "2,000 × 1,000 hidden: 2,133,010": {"hidden": (2000, 1000)},
    "K = 1": {"epochs": 1},
    "K = 3": {"epochs": 3},
    "K = 30": {"epochs": 30},
    "P = 0": {"suspension": 0.0},
    "P = 0.5": {"suspension": 0.5},
    "P = 0.9": {"suspension": 0.9},
}


class Clock:
    """Adds up what parts of a run take; what a part calls in turn is not its own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, part: str, call: Callable[[], Result]) -> Result:
        started = time.perf_counter()
        result = call()
        self.seconds[part] += time.perf_counter() - started
        return result


class TimedServer(Server):
    clock: Clock

    def receive(self, update: ClientUpdate, held_seconds: float | None = None) -> Receipt:
        return self.clock.timed("server", partial(super().receive, update, held_seconds))


class TimedTransport(VirtualTransport):
    clock: Clock

    def send(self, task: TrainTask) -> None:
        self.clock.timed("send", partial(super().send, task))


def timed_training(train: Train, clock: Clock) -> Train:
    return lambda task: clock.timed("training", partial(train, task))


def measure(
    updates: int, clients: int, hidden: tuple[int, int], epochs: int, suspension: float
) -> dict[str, float]:
    """Microseconds per update, by part; and how much virtual time one takes."""
    data = synthetic(1, 1, clients, seed=1, num_examples=[60] * clients)
    datasets = {name: as_tensors(examples) for name, examples in data.train.items()}
    with reproducible(randomness.key(0, "initial-model")):
        module = mlp(FEATURES, hidden, CLASSES)
    trainer = CompiledTrainer(module, datasets)
    clock = Clock()
    server = TimedServer(trainer.initial, asyncfeded(kappa=0.0, initial_epochs=epochs))
    server.clock = clock
    devices = {name: Device(EPOCH_SECONDS, 10 * EPOCH_SECONDS) for name in datasets}
    model = DeviceModel(devices, suspension=suspension, bytes_per_second=BYTES_PER_SECOND)
    workers = InProcess(timed_training(trainer, clock))
    transport = TimedTransport(model, workers, [Membership(n) for n in datasets], seconds=1e9)
    transport.clock = clock
    log = EventLog()
    seconds = 0.0
    with one_blas_thread():
        events = run(server, transport, seconds=1e9)
        for event in events:
            if server.accepted == 2 * clients:  # every client's memory has been used by now
                clock.seconds.clear()
                seconds, first = event.seconds, server.accepted
                started = time.perf_counter()
            clock.timed("log", partial(log.write, event))
            if server.accepted >= 2 * clients + updates:
                break
        wall = time.perf_counter() - started
        events.close()
    count = server.accepted - first
    clock.seconds["loop"] = wall - sum(clock.seconds.values())
    per_update = {part: 1e6 * clock.seconds[part] / count for part in PARTS}
    return {**per_update, "virtual": (event.seconds - seconds) / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    for _ in range(arguments.repeats):
        for name, change in CASES.items():
            few = 10 if "2,133,010" in name or "465,410" in name else 1
            case = {**USUAL, **change}
            measured[name].append(measure(arguments.updates // few, **case))
    print(f"{'µs per update':<32}" + "".join(f"{part:>10}" for part in PARTS) + "   in training")
    for name, runs in measured.items():
        medians = {part: statistics.median(run[part] for run in runs) for part in runs[0]}
        share = statistics.median(
            run["training"] / sum(run[part] for part in PARTS) for run in runs
        )
        figures = "".join(f"{medians[part]:>10.1f}" for part in PARTS)
        virtual = f"   {1e3 * medians['virtual']:.1f} virtual ms"
        print(f"{name:<32}{figures}{share:>14.1%}{virtual if name.startswith('P') else ''}")


if __name__ == "__main__":
    main()
