"""What it costs that Prometheus can read a run, as ratios in one run.

    python benchmarks/monitoring.py [--repeats 15] [--seconds 1] [--clients 8]

A server with and without `Prometheus`, in turns. Both are the whole path: loop, AsyncFedED and the
log. The clients need no time and are in the server's own process, so all time is the server's.

A ratio is of the time per update within a repeat, and the median of all; in brackets stand the
lowest and the highest. Then how long one scrape takes, over HTTP, and how long it is.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from urllib.request import urlopen

import numpy as np

from asyncfeded import EventLog, Prometheus, Server, rules
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run
from journal import ENDLESS_SECONDS, AtOnce, spread, turn

SIZES = (10, 33_310, 1_000_000)
SCRAPES = 50


def updates(size: int, clients: int, monitor: Prometheus | None) -> Iterator[None]:
    """An endless run that can be read, or not."""
    server = Server(np.zeros(size, dtype=np.float32), rules.asyncfeded(kappa=0.0))
    control = Run(server, ENDLESS_SECONDS)
    with ExitStack() as stack:
        transport = stack.enter_context(closing(AtOnce(size, clients)))
        log = stack.enter_context(EventLog())
        if monitor is not None:
            stack.enter_context(monitor)
        for event in run(server, transport, ENDLESS_SECONDS, control=control):
            log.write(event)
            if monitor is not None:
                monitor(event, control)
            if isinstance(event, Received):
                yield


def compare(size: int, clients: int, repeats: int, seconds: float) -> None:
    """Print a row of the table."""
    monitor = Prometheus(port=0)
    without, watched = updates(size, clients, None), updates(size, clients, monitor)
    pairs = []
    with closing(without), closing(watched):  # type: ignore[type-var]
        for _ in range(repeats):
            pairs.append([turn(of, clients, seconds) for of in (without, watched)])
    bare, read = (statistics.median(1e6 * pair[side] for pair in pairs) for side in (0, 1))
    added = statistics.median(1e6 * (pair[1] - pair[0]) for pair in pairs)
    ratios = spread([pair[1] / pair[0] for pair in pairs])
    print(f"{size:>10,}  {bare:>9.1f} µs  {read:>9.1f} µs  {added:>6.1f} µs  {ratios}", flush=True)


def print_scrape(clients: int) -> None:
    """Print how long it takes to read a run."""
    monitor = Prometheus(port=0)
    watched = updates(10, clients, monitor)
    with closing(watched):  # type: ignore[type-var]
        for _ in range(1000):
            next(watched)
        assert monitor.url is not None
        took, text = [], b""
        for _ in range(SCRAPES):
            began = time.perf_counter()
            with urlopen(monitor.url) as answer:  # noqa: S310 - of this very process
                text = answer.read()
            took.append(time.perf_counter() - began)
    print(f"\na scrape: {1e3 * statistics.median(took):.1f} ms, {len(text) / 1e3:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1.0, help="a turn's length, at least")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    print(f"cores: {os.cpu_count()}, clients: {options.clients}, repeats: {options.repeats}")
    print("parameters   per update   with Prometheus  added   ratio")
    for size in options.sizes:
        compare(size, options.clients, options.repeats, options.seconds)
    print_scrape(options.clients)


if __name__ == "__main__":
    main()
