"""Speed and memory with few clients and with very many, in one run.

    python benchmarks/scale.py [--updates 3000] [--repeats 3]

AsyncFedED on Synthetic-1-1 with two workers, ten epochs of about fifty examples a round, data and
devices made on demand. First ten clients are at work, of 10, 1,000, 10,000 and 100,000; then 10,
100, 1,000 and 10,000, of 100,000. Every run is a process of its own, so that its memory is its own;
the runs are taken in turn, as often as `--repeats` says. Memory is the peak, less what the process
had when the first client was about to join. A client at work costs the version that it trains
from and, once it is trained ahead of time, its update: two vectors of 33,310 parameters, 266 kB.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from asyncfeded.experiment.run import run_experiment
from asyncfeded.experiment.settings import run_settings
from asyncfeded.runtime.events import Event, Finished, Started

EXAMPLES = 60
ROUND_SECONDS = 0.15
"""About what a round takes in virtual time."""
EVEN = ((10, 10), (1_000, 10), (10_000, 10), (100_000, 10))
WIDE = ((100_000, 10), (100_000, 100), (100_000, 1_000), (100_000, 10_000))


class Figures(NamedTuple):
    """What one run measured."""

    updates: int
    seconds: float
    memory: float
    log_sha256: str


def one_run(clients: int, at_work: int, updates: int) -> Figures:
    """Carry out a run in this process."""
    marks: list[tuple[float, float]] = []

    def note(event: Event, _: object) -> None:
        if isinstance(event, Started | Finished):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            marks.append((time.perf_counter(), peak))

    seconds = (updates / at_work + 1) * ROUND_SECONDS
    result = run_experiment(
        run_settings(
            {
                "clients": clients,
                "at_work": at_work,
                "seconds": seconds,
                "evaluate_every": seconds,
                "max_examples": EXAMPLES,
                "test_clients": 10,
                "suspension": 0.0,
                "kappa": 0.0,
                "workers": 2,
                "devices": "heterogeneous",
            }
        ),
        [note],
    )
    (begun, before), (ended, after) = marks
    return Figures(result.updates, ended - begun, after - before, result.log_sha256)


def in_a_process(clients: int, at_work: int, updates: int) -> Figures:
    command = [sys.executable, str(Path(__file__)), "--one", str(clients), str(at_work)]
    done = subprocess.run(
        [*command, "--updates", str(updates)], check=True, capture_output=True, text=True
    )
    return Figures(**json.loads(done.stdout))


def report(cases: tuple[tuple[int, int], ...], updates: int, repeats: int) -> None:
    runs: dict[tuple[int, int], list[Figures]] = {case: [] for case in cases}
    for _ in range(repeats):
        for clients, at_work in cases:
            # Enough for every place to be taken a few times.
            runs[clients, at_work].append(in_a_process(clients, at_work, max(updates, 2 * at_work)))
    first = runs[cases[0]]
    print(f"{'clients':>9} {'at work':>8} {'updates/s':>10}  {'against the first row':<22}  memory")
    for (clients, at_work), figures in runs.items():
        rates = [run.updates / run.seconds for run in figures]
        ratios = [
            rate / (run.updates / run.seconds) for rate, run in zip(rates, first, strict=True)
        ]
        spread = f"{statistics.median(ratios):.2f} × ({min(ratios):.2f} to {max(ratios):.2f})"
        memory = statistics.median(run.memory for run in figures)
        same = "" if len({run.log_sha256 for run in figures}) == 1 else "  LOGS DIFFER"
        rate = f"{statistics.median(rates):,.0f}"
        print(f"{clients:>9,} {at_work:>8,} {rate:>10}  {spread:<22}  {memory:,.0f} MiB{same}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=3000, help="about how many a run makes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        clients, at_work = arguments.one
        print(json.dumps(one_run(clients, at_work, arguments.updates)._asdict()))
        return
    for cases in (EVEN, WIDE):
        report(cases, arguments.updates, arguments.repeats)
        print()


if __name__ == "__main__":
    main()
