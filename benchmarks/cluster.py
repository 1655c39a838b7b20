"""What the server on Ray costs beyond Ray itself.

    python benchmarks/cluster.py [--clients 10] [--repeats 5] [--seconds 3] [--no-memory]

First a model of 25 million parameters: how much memory the server and the object store took, beside
the bound that follows from leases.

Then ten clients that train nothing: an update is ready as soon as a task is there. At each size of
the model, `asyncfeded` is AsyncFedED with its server, events and log on `RayTransport`; `bare Ray`
is a loop that waits for any client, takes its array and gives it another, with nothing between.
Both take turns in one run; ratios are of the time per update, within a repeat. The delay is that
from "update ready" to "next task received", as the client's own clock has it.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray

from asyncfeded import Server, rules
from asyncfeded.cluster.processes import MakeTrain
from asyncfeded.cluster.ray_transport import RayTransport
from asyncfeded.cluster.session import ray_session
from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run
from asyncfeded.store.log import EventLog

SIZES = {"10 KB": 2_500, "130 KB": 32_500, "1 MB": 250_000, "50 MB": 12_500_000}
BIG = 25_000_000
ENDLESS_SECONDS = 1e9
MB = 1e6


class Turn(NamedTuple):
    """What one turn of a contestant gave."""

    seconds_per_update: float
    median_delay: float


def idle_client(size: int) -> MakeTrain:
    """A client with nothing to do; it tells its delay in microseconds as its number of examples."""

    def make() -> Train:
        delta = np.full(size, 1e-6, dtype=np.float32)
        ready = [time.perf_counter()]

        def train(task: TrainTask) -> ClientUpdate:
            delay = time.perf_counter() - ready[0]
            microseconds = 1 + int(1e6 * delay)
            update = ClientUpdate(
                task.client_id, task.version, delta, microseconds, task.epochs, task.round
            )
            ready[0] = time.perf_counter()
            return update

        return train

    return make


def asyncfeded_delays(size: int, clients: int) -> Iterator[float]:
    """An endless run; the delay of each update."""
    makers = {f"client-{index}": idle_client(size) for index in range(clients)}
    server = Server(np.zeros(size, dtype=np.float32), rules.asyncfeded(kappa=0.0))
    log = EventLog()
    with closing(RayTransport(makers, ENDLESS_SECONDS)) as transport:
        for event in run(server, transport, ENDLESS_SECONDS):
            log.write(event)
            if isinstance(event, Received):
                assert event.receipt.accepted
                yield (event.num_examples or 0) / 1e6


class BareClient:
    """As the client above, without anything of ours."""

    def __init__(self, size: int) -> None:
        self._delta = np.full(size, 1e-6, dtype=np.float32)
        self._ready = time.perf_counter()

    def train(self, parameters: Vector) -> tuple[Vector, float]:
        delay = time.perf_counter() - self._ready
        assert parameters.size == self._delta.size
        self._ready = time.perf_counter()
        return self._delta, delay


def bare_delays(size: int, clients: int) -> Iterator[float]:
    """The same exchange of arrays, and nothing else."""
    kind: Any = ray.remote(BareClient)
    actors = [kind.options(num_cpus=0).remote(size) for _ in range(clients)]
    model = np.zeros(size, dtype=np.float32)
    try:
        calls = {actor.train.remote(model): actor for actor in actors}
        while True:
            (ready,), _ = ray.wait(list(calls), num_returns=1)
            actor = calls.pop(ready)
            delta, delay = ray.get(ready)
            calls[actor.train.remote(model)] = actor
            assert delta.size == size
            del delta, ready
            yield delay
    finally:
        for actor in actors:
            ray.kill(actor)


def take_turn(delays: Iterator[float], clients: int, seconds: float) -> Turn:
    """Updates for some seconds; the first of each client are not counted."""
    for _ in range(2 * clients):
        next(delays)
    found: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(found) < clients:
        found.append(next(delays))
    return Turn((time.perf_counter() - began) / len(found), statistics.median(found))


def race(name: str, size: int, clients: int, repeats: int, seconds: float) -> None:
    """Print a row of the table."""
    ours, bare = asyncfeded_delays(size, clients), bare_delays(size, clients)
    turns: list[tuple[Turn, Turn]] = []
    with closing(ours), closing(bare):  # type: ignore[type-var]
        for _ in range(repeats):
            pair = take_turn(ours, clients, seconds), take_turn(bare, clients, seconds)
            turns.append(pair)
    ratios = sorted(a.seconds_per_update / b.seconds_per_update for a, b in turns)
    rates = [
        statistics.median(1 / pair[side].seconds_per_update for pair in turns) for side in (0, 1)
    ]
    delays = [statistics.median(1e3 * pair[side].median_delay for pair in turns) for side in (0, 1)]
    print(
        f"{name:>7}  {rates[0]:10.1f}  {rates[1]:10.1f}  {delays[0]:10.2f}  {delays[1]:10.2f}"
        f"  {statistics.median(ratios):5.2f} × ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        flush=True,
    )


def shared_memory_used() -> float:
    """Bytes in /dev/shm, where the object store lies; memory that it has touched stays there."""
    usage = os.statvfs("/dev/shm")  # noqa: S108 - looked at, not written
    return (usage.f_blocks - usage.f_bfree) * usage.f_frsize


def own_memory() -> float:
    """Bytes of this process that no other shares, so without what it sees of the object store."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * float(line.split()[1])
    raise RuntimeError("this system does not say how much memory a process has")


def print_memory(clients: int, updates: int) -> bool:
    """Whether a big model stays within its bound."""
    bytes_each = 4 * BIG
    # A version per client at work, the current one, and two spare buffers; in the object store a
    # version and a delta per client, and the version that is being handed out.
    server_bound = bytes_each * (clients + 3)
    store_bound = bytes_each * (2 * clients + 1)
    store_before = shared_memory_used()
    server_before = own_memory()
    server = store = 0.0
    delays = asyncfeded_delays(BIG, clients)
    with closing(delays):  # type: ignore[type-var]
        for _ in range(updates):
            next(delays)
            server = max(server, own_memory() - server_before)
            store = max(store, shared_memory_used() - store_before)
    print(f"{BIG:,} parameters ({bytes_each / MB:.0f} MB), {clients} clients, {updates} updates:")
    for name, used, bound in (("server", server, server_bound), ("store", store, store_bound)):
        print(f"{name:>7}  {used / MB:6.0f} MB at most; bound {bound / MB:6.0f} MB")
    return server <= server_bound and store <= store_bound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="a turn's length, at least")
    parser.add_argument("--no-memory", action="store_true", help="leave out the big model")
    arguments = parser.parse_args()
    print(f"cores: {os.cpu_count()}, clients: {arguments.clients}, repeats: {arguments.repeats}")
    if not arguments.no_memory:
        with ray_session():  # one of its own: an object store keeps what it has touched
            if not print_memory(arguments.clients, 5 * arguments.clients):
                print("memory went beyond its bound")
                return 1
    print("\n           updates/s               median delay, ms        time per update")
    print("  model  asyncfeded    bare Ray  asyncfeded    bare Ray  asyncfeded ÷ bare Ray")
    with ray_session():
        for name, size in SIZES.items():
            race(name, size, arguments.clients, arguments.repeats, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
