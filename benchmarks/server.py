"""What one update costs the server, beside copying memory, as ratios in one run.

    python benchmarks/server.py [--parameters 1e4 2e4 1e6 1e7 1e8] [--repeats 5] [--rule NAME]

For every number of parameters and every rule: a copy of a vector (on one thread and on all, the
faster counts) and 20 calls of `Server.receive`, taking turns as often as `--repeats` says. Four
clients are at work and report one after the other. The ratio is to the time of moving, at the
copy's speed, the bytes that the rule must move (`BYTES`). Memory that is written counts twice,
because the processor fetches what it is about to overwrite. With `sketch`, versions are kept as
sketches of 65,536 numbers. The last table has how far the distances that sketches tell are from the
exact ones.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
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
CALLS = 20
"""A multiple of what the buffers hold (10 and 5) and of the clients of a round."""
BYTES_PER_COPY = 8  # read and written

NORMS = 4 + 4 + 4  # Δ, x_t, x_base
STEP = 4 + 4 + 8  # x_t, the direction, x_{t+1} written
SUM = 8 + 4 + 16  # S, a vector, S written, in float64
MEAN = 8 + 8  # S, the mean written
MOMENTUM = 4 + 4 + 8  # m, the mean, m written
ADAPTIVE = (4 + 8 + 4) + (8 + 16 + 8)  # m, v, the mean; m, v and the direction written
AMSGRAD = (8 + 4 + 8 + 8) + (8 + 16 + 16 + 8)  # S, m, v, v̂; m, v, v̂ and the direction written
COPY = 4 + 8
AT_ONCE = NORMS + STEP
BUFFERED = NORMS + SUM + (MEAN + STEP) / 10
ROUND = NORMS + SUM + (MEAN + STEP) / CLIENTS
ALL_VECTORS = 8 + 4 * CLIENTS + 16  # the sum over all clients, made anew
BYTES = {
    "asyncfeded": AT_ONCE,
    "delay-adaptive": AT_ONCE,
    "ringmaster": AT_ONCE,
    **dict.fromkeys(("fedasync-constant", "fedasync-hinge", "fedasync-polynomial"), AT_ONCE + 4),
    "fedbuff": BUFFERED,
    "fedbuff-momentum": BUFFERED + MOMENTUM / 10,
    **dict.fromkeys(("fedbuff-adagrad", "fedbuff-adam", "fedbuff-yogi"), BUFFERED + ADAPTIVE / 10),
    **dict.fromkeys(("fadas", "fadas-adaptive"), NORMS + SUM + (AMSGRAD + STEP) / 5),
    **dict.fromkeys(("fedavg", "fedprox", "fednova"), ROUND),
    "fedavgm": ROUND + MOMENTUM / CLIENTS,
    **dict.fromkeys(("fedadagrad", "fedadam", "fedyogi"), ROUND + ADAPTIVE / CLIENTS),
    # Both sums with the new vector for the old one; the update kept; the mean of a buffer.
    "ca2fl": NORMS + 2 * (SUM + 4) + COPY + ALL_VECTORS / CLIENTS + (24 + 24 + STEP) / 10,
    # The old vector taken out and the new one put in: two changes of the sum.
    **dict.fromkeys(("ace", "aced"), NORMS + 2 * SUM + COPY + ALL_VECTORS / 2 + MEAN + STEP),
}
"""The bytes per parameter that an update must move, by rule: on average, where it differs."""


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
        receipt = self._server.receive(update, held_seconds=1.0)
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


def measure(parameters: int, repeats: int, names: Sequence[str]) -> None:
    source, target = np.ones(parameters, np.float32), np.zeros(parameters, np.float32)
    copying = [copy_seconds(source, target) for _ in range(CALLS)]
    moved = statistics.median(copying) * AT_ONCE / BYTES_PER_COPY
    print(f"{parameters:,} parameters: {shown(moved)} to move {AT_ONCE} bytes each")
    variants = [(name, keep) for name in names for keep in kinds(name)]
    for name, keep in variants:
        turns = Turns(parameters, name, keep)
        for _ in range(CALLS):
            turns()
        times, ratios = [], []
        for _ in range(repeats):
            copy = statistics.median(copy_seconds(source, target) for _ in range(CALLS))
            rounds = max(1, min(100, 1_000_000 // parameters))
            seconds = statistics.fmean(turns() for _ in range(rounds * CALLS))
            times.append(seconds)
            ratios.append(seconds / (copy * BYTES[name] / BYTES_PER_COPY))
        title = name if keep == "leased" else f"{name}, {keep}"
        print(
            f"  {title:<20} {shown(statistics.median(times)):>9}  {BYTES[name]:>5.4g} bytes"
            f"  {statistics.median(ratios):.2f} × ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def kinds(rule: str) -> tuple[Keep, ...]:
    """How versions may be kept: as sketches, too, in the rule that the table is about."""
    return ("leased", "sketch") if rule == "asyncfeded" else ("leased",)


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
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--rule", action="append", choices=list(rules.REGISTRY), help="repeatable; default: all"
    )
    arguments = parser.parse_args()
    names = arguments.rule or list(rules.REGISTRY)
    print(f"One update, {CLIENTS} clients at work, {THREADS} threads: median (range over repeats)")
    for parameters in arguments.parameters:
        measure(int(parameters), arguments.repeats, names)
    same = "yes" if len(digests_by_threads()) == 1 else "NO"
    print(f"same bits with 1, 2 and 4 threads: {same}")
    sketch_errors(1_000_000, 200)


if __name__ == "__main__":
    main()
