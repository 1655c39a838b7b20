"""Client rounds per second of this engine and of other tools on the same work, in one run.

    python benchmarks/peers.py [--workload mlp] [--row pfl] [--repeats 5] [--slot-seconds 4]
                               [--json FILE]

A client round is K = 10 mini-batches of 32 examples, momentum SGD (0.5, learning rate 0.01) and
cross-entropy, on one of 20 clients with 320 random examples each. The workloads are the models of
the paper's tasks at this project's default widths: `mlp` (Synthetic-1-1), `cnn` (FEMNIST) and
`lstm` (Shakespeare). Carried out by

    engine      AsyncFedED at constant K on the virtual clock with an event log; training by eager
                PyTorch, or compiled where there is a kernel for the model; 1 and 2 workers
    plain loop  a tutorial's loop in eager PyTorch with AsyncFedED's server in a few lines
    Flower      its simulation, two Ray actors of one core each, its FedAvg strategy
    FedLab      its standalone pipeline: serial trainer and synchronous FedAvg handler
    pfl         its simulated backend with FederatedAveraging, in 1 and in 2 processes

Of the others, none of these simulates asynchronous training. Tools that do so on a virtual clock
race by FedAsync (constant) and by FedBuff (M = 10), with clients of different speeds, the slowest
almost five times as slow as the fastest, all of them at work:

    engine      two workers, with an event log; eager or compiled
    APPFL       `vsim.AsyncSimDriver` with VanillaTrainer: `peer_rounds/appfl_simulation.py`
    FLGo        its simulator with its FedAsync and FedBuff: `peer_rounds/flgo_simulation.py`

where it is written what was changed to make them run. All run on two cores, warm, with the data in
memory and without any evaluation. Tools that are one sequential process have one torch thread or
two, whichever was faster when they warmed up.

Each contestant is a process that is stopped until its turn. They take turns, as often as
`--repeats` says; ratios are taken within a repeat, and the median is reported with its range and
the number of repeats in which this engine was ahead. With `--row`, fewer take part and turns lie
closer together, which tells apart what is nearly as fast. The tools live in virtual environments
of their own under `--envs`, which are made from the exact versions in `peer_rounds/requirements/`
the first time. A tool that cannot be installed or started is reported as failed, the others go on,
and the exit code is 1.
"""

import argparse
import json
import os
import signal
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peer_rounds.contestant import Contestant, ContestantFailedError, UnavailableError
from peer_rounds.environments import EnvironmentFailedError, environment_python
from peer_rounds.rows import CONTESTS, ROWS, Contest, Row, chosen
from peer_rounds.workload import BATCH, CLIENTS, MODELS, STEPS, make_module

BENCHMARKS = Path(__file__).resolve().parent


@dataclass
class Race:
    """The contestants of one workload that have come to the start, and those that failed."""

    contestants: list[Contestant] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


def run_race(
    rows: Sequence[Row],
    workload: str,
    envs: Path,
    repeats: int,
    slot_seconds: float,
    scratch: Path,
) -> Race:
    race = Race()
    with ExitStack() as running:
        for row in rows:
            start(row, workload, envs, scratch, race, running)
        for repeat in range(repeats):
            print(f"{workload}: repeat {repeat + 1} of {repeats}", file=sys.stderr)
            for contestant in list(race.contestants):
                try:
                    contestant.go(slot_seconds)
                except ContestantFailedError as error:
                    race.failures[contestant.name] = str(error)
                    race.contestants.remove(contestant)
    return race


def start(
    row: Row, workload: str, envs: Path, scratch: Path, race: Race, running: ExitStack
) -> None:
    """Start a contestant and wait until it is warm, so that nothing disturbs the next one."""
    print(f"{workload}: starting {row.name}", file=sys.stderr)
    try:
        python = (
            Path(sys.executable)
            if row.environment is None
            else environment_python(row.environment, envs)
        )
        contestant = Contestant.start(
            row.name,
            [str(python), "-m", f"peer_rounds.{row.module}", "--workload", workload, *row.options],
            folder=BENCHMARKS,
            environment=quiet_environment(scratch),
            log=scratch / f"{row.name}.log",
        )
        running.callback(contestant.end)
        contestant.wait_until_ready()
        race.contestants.append(contestant)
    except UnavailableError as error:
        print(f"{workload}: no row for {row.name}: {error}", file=sys.stderr)
    except (ContestantFailedError, EnvironmentFailedError, OSError) as error:
        race.failures[row.name] = str(error)


def quiet_environment(scratch: Path) -> dict[str, str]:
    """Nothing is reported to anybody, and what is left behind lies in a folder that is removed."""
    return {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_HOME": str(scratch / "flwr"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": str(scratch),
    }


def ratios(reference: Contestant, other: Contestant) -> str:
    """How many times as fast the reference is within each repeat, and how often it is ahead."""
    values = [
        ours.rate / theirs.rate for ours, theirs in zip(reference.slots, other.slots, strict=True)
    ]
    ahead = sum(value > 1 for value in values)
    return (
        f"{statistics.median(values):.2f} × ({min(values):.2f} to {max(values):.2f}; "
        f"{ahead} of {len(values)})"
    )


def print_tables(workload: str, race: Race) -> None:
    parameters = sum(parameter.numel() for parameter in make_module(workload).parameters())
    print(
        f"\n{workload}: {parameters:,} parameters, {CLIENTS} clients, "
        f"{STEPS} mini-batches of {BATCH} per client round"
    )
    for contest in CONTESTS:
        print_table(contest, race)


def print_table(contest: Contest, race: Race) -> None:
    by_name = {contestant.name: contestant for contestant in race.contestants}
    references = [by_name[row.name] for row in contest.references if row.name in by_name]
    titles = [f"{reference.name.split(': ')[-1]} ÷ this" for reference in references]
    lines = [[contest.title, "client rounds/s", *titles, ""]]
    for row in contest.rows:
        if row.name in race.failures:
            lines.append([row.name, f"failed: {race.failures[row.name]}"])
        elif row.name in by_name:
            contestant = by_name[row.name]
            rate = statistics.median(slot.rate for slot in contestant.slots)
            compared = [
                "" if reference is contestant else ratios(reference, contestant)
                for reference in references
            ]
            lines.append([row.name, f"{rate:.1f}", *compared, contestant.note])
    if len(lines) == 1:
        return
    complete = [line for line in lines if len(line) == len(lines[0])]
    widths = [max(map(len, column)) for column in zip(*complete, strict=True)]
    widths[0] = max(len(line[0]) for line in lines)
    print()
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        print("  ".join(cells).rstrip())


def raw_figures(race: Race) -> dict[str, Any]:
    """What was measured, for a file."""
    return {
        "contestants": {
            contestant.name: {
                "note": contestant.note,
                "slots": [slot._asdict() for slot in contestant.slots],
            }
            for contestant in race.contestants
        },
        "failures": race.failures,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--workload", action="append", choices=list(MODELS), help="may be repeated; default: all"
    )
    parser.add_argument(
        "--row",
        action="append",
        metavar="PART",
        help="only rows whose name contains this, and the engine that they are compared with; "
        "may be repeated; default: all",
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slot-seconds", type=float, default=4.0, help="a turn's length, roughly")
    parser.add_argument(
        "--envs",
        type=Path,
        default=BENCHMARKS.parent / ".peers",
        help="where the peers' virtual environments are kept",
    )
    parser.add_argument("--json", type=Path, help="write the raw figures to this file")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # ended from outside, it ends the contestants
        signal.signal(number, partial(_leave, 128 + number))
    for part in arguments.row or []:
        if not any(part in row.name for row in ROWS):
            known = ", ".join(repr(row.name) for row in ROWS)
            parser.error(f"--row must be a part of {known}; given {part!r}")
    rows = ROWS if arguments.row is None else chosen(arguments.row)
    races = {}
    print(
        f"cores: {os.cpu_count()}, repeats: {arguments.repeats}; medians, ratios with their range "
        "and how often above 1"
    )
    with TemporaryDirectory(prefix="peers-") as scratch:
        for workload in arguments.workload or list(MODELS):
            races[workload] = run_race(
                rows,
                workload,
                arguments.envs.resolve(),
                arguments.repeats,
                arguments.slot_seconds,
                Path(scratch),
            )
            print_tables(workload, races[workload])
    if arguments.json is not None:
        figures = {workload: raw_figures(race) for workload, race in races.items()}
        document = {"cores": os.cpu_count(), "workloads": figures}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if any(race.failures for race in races.values()) else 0


def _leave(code: int, *_: object) -> None:
    sys.exit(code)


if __name__ == "__main__":
    sys.exit(main())
