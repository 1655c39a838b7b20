"""What one update costs the server, beside copying memory, as ratios in one run.

    python benchmarks/server.py [--parameters 1e4 2e4 1e6 1e7 1e8] [--repeats 9]

For every number of parameters, one after the other and as often as `--repeats` says: a copy of a
vector (on one thread and on all, the faster counts), and `Server.receive` with the update of the
client whose turn it is, four at work. An update of AsyncFedED reads x_t, x_base and Δ for the two
norms, then x_t and Δ again, and writes x_{t+1}: 24 bytes per parameter, or 28 where the processor
fetches what it is about to overwrite. The ratio is to the time of moving 28 bytes per parameter at
the copy's speed. With `sketch`, versions are kept as sketches of 65,536 numbers. The last table has
how far the distances that sketches tell are from the exact ones.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np

from asyncfeded import ClientUpdate, Server, VersionHistory, rules
from asyncfeded.core.history import Keep
from asyncfeded.core.kernels import THREADS
from asyncfeded.core.sketch import distance, sketch
from asyncfeded.core.vectors import Vector, norm_and_distance

CLIENTS = 4
BYTES_PER_UPDATE = 28
BYTES_PER_COPY = 8  # read and written


class Turns:
    """A server whose clients report one after the other, each with a delta of its own."""

    def __init__(self, parameters: int, rule: str, keep: Keep = "leased") -> None:
        draw = np.random.default_rng(0)
        self._server = Server(
            draw.random(parameters, dtype=np.float32),
            rules.REGISTRY[rule](),
            history=VersionHistory(keep),
        )
        self._held = {}
        for index in range(CLIENTS):
            task = self._server.join(f"client-{index}")
            self._held[task.client_id] = task.version, task.round
        self._deltas = {
            name: 0.01 * draw.random(parameters, dtype=np.float32) for name in self._held
        }
        self._next = 0

    def __call__(self) -> float:
        """The seconds of one update."""
        name = f"client-{self._next % CLIENTS}"
        self._next += 1
        version, number = self._held[name]
        update = ClientUpdate(name, version, self._deltas[name], 100, 10, number)
        started = time.perf_counter()
        receipt = self._server.receive(update)
        seconds = time.perf_counter() - started
        assert receipt.accepted
        for task in receipt.tasks:
            self._held[task.client_id] = task.version, task.round
        return seconds

    @property
    def digest(self) -> str:
        return sha256(self._server.parameters.tobytes()).hexdigest()


def copy_seconds(source: Vector, target: Vector) -> float:
    """The seconds of a copy on one thread, or on all if that is faster."""
    started = time.perf_counter()
    np.copyto(target, source)
    alone = time.perf_counter() - started
    if source.size < 1_000_000:
        return alone
    with ThreadPoolExecutor(THREADS) as pool:
        parts = zip(np.array_split(source, THREADS), np.array_split(target, THREADS), strict=True)
        started = time.perf_counter()
        list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))
        together = time.perf_counter() - started
    return min(alone, together)


def measure(parameters: int, repeats: int) -> None:
    calls = max(1, min(2000, 20_000_000 // parameters))
    source, target = np.ones(parameters, np.float32), np.zeros(parameters, np.float32)
    variants = {
        "asyncfeded": Turns(parameters, "asyncfeded"),
        "asyncfeded, sketch": Turns(parameters, "asyncfeded", "sketch"),
        "fedasync-constant": Turns(parameters, "fedasync-constant"),
        "fedbuff": Turns(parameters, "fedbuff"),
    }
    for turns in variants.values():
        for _ in range(2 * CLIENTS):
            turns()
    copies = []
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats):
        copies.append(statistics.median(copy_seconds(source, target) for _ in range(calls)))
        for name, turns in variants.items():
            seconds[name].append(statistics.median(turns() for _ in range(calls)))
    moved = statistics.median(copies) * BYTES_PER_UPDATE / BYTES_PER_COPY
    print(f"{parameters:,} parameters: {shown(moved)} to move 28 bytes each")
    for name, times in seconds.items():
        ratios = [
            time_ / (copy * BYTES_PER_UPDATE / BYTES_PER_COPY)
            for time_, copy in zip(times, copies, strict=True)
        ]
        note = f"  {statistics.median(ratios):.2f} × ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"  {name:<20} {shown(statistics.median(times)):>9}{note}")


def sketch_errors(parameters: int, distances: int) -> None:
    """How far sketches of a random walk's steps are off, beside what is stated."""
    draw = np.random.default_rng(0)
    position = draw.random(parameters, dtype=np.float32)
    buckets = (1024, 4096, 16_384, 65_536)
    errors: dict[int, list[float]] = {count: [] for count in buckets}
    for _ in range(distances):
        moved = position + np.float32(0.01) * draw.standard_normal(parameters, dtype=np.float32)
        _, exact = norm_and_distance(position, moved, position)
        for count in buckets:
            told = distance(sketch(moved, count), sketch(position, count))
            errors[count].append(told / exact - 1)
        position = moved
    print(f"sketches: {distances} distances at {parameters:,} parameters")
    for count, off in errors.items():
        spread = f"deviation {np.std(off):.2%}, largest {np.abs(off).max():.2%}"
        print(f"  {count:>6,} buckets  stated {1 / math.sqrt(2 * count):.2%}, {spread}")


def shown(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def digests_by_threads() -> set[str]:
    """What a server of three million parameters comes to with 1, 2 and 4 threads."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from server import Turns\n"
        "turns = Turns(3_000_001, 'asyncfeded')\n"
        "for _ in range(12): turns()\n"
        "print(turns.digest)"
    )
    return {
        subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parent)],
            env={**os.environ, "NUMBA_NUM_THREADS": str(threads)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in (1, 2, 4)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--parameters", type=float, nargs="+", default=[1e4, 2e4, 1e6, 1e7, 1e8], metavar="N"
    )
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    print(f"One update, {CLIENTS} clients at work, {THREADS} threads: median (range over repeats)")
    for parameters in arguments.parameters:
        measure(int(parameters), arguments.repeats)
    same = "yes" if len(digests_by_threads()) == 1 else "NO"
    print(f"same bits with 1, 2 and 4 threads: {same}")
    sketch_errors(1_000_000, 200)


if __name__ == "__main__":
    main()
