"""What it costs that nothing is lost, as ratios in one run.

    python benchmarks/journal.py [--repeats 5] [--seconds 2] [--clients 8] [--no-ray]

First the disk: how long a small write takes to be safe, and how fast large ones are.

Then a server with and without a journal, in turns. Both are the whole path: loop, AsyncFedED and
the log, and with the journal everything that a `Checkpoint` does in real time: every signal is
written and safe before its client is answered, with group commit and snapshots. Deltas are random.

- `in-process`: clients that need no time, in the server's own process. An update is ready as soon
  as its task is there: the pure cost, and the worst case.
- `Ray`: the clients are processes that need no time; what is added to a real server that is never
  idle.
- `Ray, 1 s rounds`: clients that take a second for a round, as training does.

Last a simulation that is saved every `--save-seconds` of real time, beside one that is not. By
default it is saved once in 60 s.

A ratio is of the time per update (of a whole run for the simulation) within a repeat, and the
median of all; in brackets stand the lowest and the highest.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asyncfeded import Checkpoint, ClientUpdate, Server, TrainTask, federate, rules
from asyncfeded.callbacks import checkpoint as checkpoints
from asyncfeded.core.messages import Train
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.transport import Arriving, Joining, Signal, Transport
from asyncfeded.store.disk import RealDisk
from asyncfeded.store.log import EventLog

SIZES = (33_310, 1_000_000, 25_000_000)
ENDLESS_SECONDS = 1e9
SMALL, LARGE, LARGE_WRITES = 512, 2**24, 16
FEWEST_UPDATES = 4
"""Per client and turn."""


class AtOnce:
    """Clients in this process whose updates are ready as soon as they have their tasks."""

    def __init__(self, size: int, clients: int) -> None:
        draw = np.random.default_rng(0)
        names = [f"client-{index}" for index in range(clients)]
        self._delta = {n: 1e-6 * draw.standard_normal(size, dtype=np.float32) for n in names}
        self._signals: list[Signal] = [Joining(0.0, name) for name in reversed(names)]

    def send(self, task: TrainTask) -> None:
        update = ClientUpdate(
            task.client_id, task.version, self._delta[task.client_id], 1, task.epochs, task.round
        )
        self._signals.insert(0, Arriving(time.monotonic(), update, 1.0))

    def next_signal(self) -> Signal | None:
        return self._signals.pop()

    def has_more(self) -> bool:
        return bool(self._signals)

    def close(self) -> None:
        pass


def constant_client(size: int, seconds: float) -> Callable[[], Train]:
    """A client that takes so long for a round, and learns the same every time."""

    def make() -> Train:
        delta = 1e-6 * np.random.default_rng().standard_normal(size, dtype=np.float32)

        def train(task: TrainTask) -> ClientUpdate:
            time.sleep(seconds)
            return ClientUpdate(task.client_id, task.version, delta, 1, task.epochs, task.round)

        return train

    return make


def at_once(size: int, clients: int) -> Transport:
    return AtOnce(size, clients)


def over_ray(seconds: float, size: int, clients: int) -> Transport:
    from asyncfeded.cluster import ray_transport

    # Both runs of a pair are there at once: their processes ask for no share of the processors.
    vars(ray_transport)["cpus_each"] = lambda _: 0.0
    makers = {f"client-{index}": constant_client(size, seconds) for index in range(clients)}
    return ray_transport.RayTransport(makers, ENDLESS_SECONDS)


def updates(transport: Transport, size: int, folder: Path | None) -> Iterator[None]:
    """An endless run; with a folder, nothing that it answers can be lost."""
    server = Server(np.zeros(size, dtype=np.float32), rules.asyncfeded(kappa=0.0))
    control = Run(server, ENDLESS_SECONDS)
    with ExitStack() as stack:
        stack.enter_context(closing(transport))
        checkpoint = None if folder is None else Checkpoint(folder)
        log = stack.enter_context(EventLog(None if folder is None else folder / "events.jsonl"))
        if checkpoint is not None:
            stack.enter_context(checkpoint.opened(resume=False))
            transport = stack.enter_context(checkpoint.keeping_signals(transport, server))
        for event in run(server, transport, ENDLESS_SECONDS, control=control):
            log.write(event)
            if checkpoint is not None:
                checkpoint(event, control)
            if isinstance(event, Received):
                assert event.receipt.accepted
                yield


def turn(run_of: Iterator[None], clients: int, seconds: float) -> float:
    """Seconds per update; the first of each client are not counted."""
    for _ in range(clients):
        next(run_of)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds or done < FEWEST_UPDATES * clients:
        next(run_of)
        done += 1
    return (time.perf_counter() - began) / done


class Ways(NamedTuple):
    """How updates come, and between how many clients."""

    name: str
    make: Callable[[int, int], Transport]
    clients: int


def compare(ways: Ways, size: int, folder: Path, repeats: int, seconds: float) -> None:
    """Print a row of the table."""
    place = folder / f"{ways.name.replace(' ', '-')}-{size}"
    place.mkdir()
    without = updates(ways.make(size, ways.clients), size, None)
    journaled = updates(ways.make(size, ways.clients), size, place)
    pairs = []
    with closing(without), closing(journaled):  # type: ignore[type-var]
        for _ in range(repeats):
            pairs.append(tuple(turn(r, ways.clients, seconds) for r in (without, journaled)))
    for path in place.iterdir():
        path.unlink()
    bare, kept = (statistics.median(1e3 * pair[side] for pair in pairs) for side in (0, 1))
    print(
        f"{ways.name:>16}  {size:>10,}  {bare:>9.3f} ms  {kept:>9.3f} ms  "
        f"{spread([with_it / alone for alone, with_it in pairs])}",
        flush=True,
    )


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):5.2f} × ({min(ratios):.2f} to {max(ratios):.2f})"


def print_disk(folder: Path) -> None:
    """How long this disk takes for what a journal asks of it."""
    with RealDisk(folder / "disk") as disk:
        disk.create("file")
        small = [timed(lambda: written(disk, bytes(SMALL))) for _ in range(50)]
        large = bytes(LARGE)
        took = sum(timed(lambda: written(disk, large)) for _ in range(LARGE_WRITES))
        disk.delete("file")
    speed = LARGE * LARGE_WRITES / took / 1e6
    print(
        f"disk: {SMALL} bytes are safe after {1e3 * statistics.median(small):.2f} ms "
        f"({1e3 * min(small):.2f} to {1e3 * max(small):.2f}); {speed:,.0f} MB/s in writes of "
        f"{LARGE // 2**20} MiB, each safe"
    )


def written(disk: RealDisk, content: bytes) -> None:
    disk.append("file", [content])
    disk.sync("file")


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def print_simulation(folder: Path, repeats: int, seconds: float, save_seconds: float) -> None:
    """A simulation with and without saving, in turns."""
    import torch
    from torch import nn

    def examples(client: int) -> Any:
        draw = torch.Generator().manual_seed(client)
        x = torch.randn(200, 60, generator=draw)
        return x, (x[:, :10].sum(dim=1) > 0).long()

    data = {f"client-{client}": examples(client) for client in range(10)}

    def simulated(place: Path | None) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(60, 256), nn.ReLU(), nn.Linear(256, 2))
        callbacks = [] if place is None else [Checkpoint(place)]
        return federate(module, data, seconds=seconds, seed=1, callbacks=callbacks)

    checkpoints.WALL_SECONDS = save_seconds
    saves: list[tuple[float, float]] = []
    save = Checkpoint._save

    def counted(self: Checkpoint, control: Run, at: float) -> None:
        began, busy = time.perf_counter(), time.process_time()
        save(self, control, at)
        saves.append((time.perf_counter() - began, time.process_time() - busy))

    Checkpoint._save = counted  # type: ignore[method-assign,assignment]
    simulated(None)
    ratios, digests = [], set()
    for repeat in range(repeats):
        results = [simulated(None), simulated(folder / f"simulation-{repeat}")]
        digests |= {result.log_sha256 for result in results}
        ratios.append(results[1].wall_seconds / results[0].wall_seconds)
    assert len(digests) == 1, "saving must not change a run"
    print(
        f"\na simulation of {results[0].wall_seconds:.0f} s, saved every {save_seconds:g} s "
        f"({len(saves) / repeats:.1f} times): {spread(ratios)}; the same log_sha256"
    )
    if saves:
        took, busy = (statistics.median(1e3 * pair[side] for pair in saves) for side in (0, 1))
        print(f"a save takes {took:.1f} ms, of which {busy:.1f} ms of a processor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="a turn's length, at least")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--no-ray", action="store_true", help="leave out what needs a Ray")
    parser.add_argument("--no-simulation", action="store_true")
    parser.add_argument("--simulated-seconds", type=float, default=600.0)
    parser.add_argument("--save-seconds", type=float, default=10.0)
    parser.add_argument("--folder", default=".", help="on the disk that is to be measured")
    options = parser.parse_args()
    print(f"cores: {os.cpu_count()}, clients: {options.clients}, repeats: {options.repeats}")
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".journal-benchmark-") as name:
        folder = Path(name)
        print_disk(folder)
        print("\n         clients  parameters  per update      with journal     ratio")
        ways = [Ways("in-process", at_once, options.clients)]
        if not options.no_ray:
            from asyncfeded.cluster.session import ray_session

            for name, seconds in (("Ray", 0.0), ("Ray, 1 s rounds", 1.0)):
                ways.append(Ways(name, partial(over_ray, seconds), options.clients))
        with nullcontext() if options.no_ray else ray_session():
            for way in ways:
                for size in options.sizes:
                    compare(way, size, folder, options.repeats, options.seconds)
        if not options.no_simulation:
            print_simulation(
                folder, options.repeats, options.simulated_seconds, options.save_seconds
            )


if __name__ == "__main__":
    main()
