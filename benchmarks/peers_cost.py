"""What an update costs beyond training, in each tool that simulates asynchronous training.

    python benchmarks/peers_cost.py [--model mlp] [--threads 1] [--repeats 9] [--slot-seconds 1]

Training is replaced by adding a constant to every parameter. All else is done as in a race of
`peers.py`: FedAsync (constant), 20 clients of different speeds, all of them at work; this project's
engine with one worker and its event log. Two models: the MLP of Synthetic-1-1 and one of about a
million parameters. Contestants take turns as in `peers.py`, the peers with one torch thread and
with two; ratios are taken within a repeat, to the engine. The figures are processor time of all
threads of a process, which other users of the machine change less than time on the clock.
"""

import argparse
import signal
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from peer_rounds.bare_updates import MAKERS
from peer_rounds.contestant import Contestant
from peer_rounds.environments import environment_python

BENCHMARKS = Path(__file__).resolve().parent
TOOLS = {"engine": "this engine", "appfl": "APPFL 1.12.0 vsim", "flgo": "FLGo 0.4.4"}


def started(model: str, tool: str, threads: int, envs: Path, scratch: Path) -> Contestant:
    python = sys.executable if tool == "engine" else str(environment_python(tool, envs))
    name = f"{TOOLS[tool]}, {threads} torch thread{'s' if threads > 1 else ''}"
    command = [python, "-m", "peer_rounds.bare_updates", "--tool", tool, "--model", model]
    command += ["--threads", str(threads)]
    log = scratch / f"{model} {name}.log"
    return Contestant.start(name, command, BENCHMARKS, {"WANDB_MODE": "disabled"}, log)


def race(model: str, arguments: argparse.Namespace, scratch: Path) -> None:
    parameters = sum(parameter.numel() for parameter in MAKERS[model]().parameters())
    peers = [(tool, threads) for tool in ("appfl", "flgo") for threads in arguments.threads]
    with ExitStack() as running:
        contestants = []
        for tool, threads in [("engine", 1), *peers]:
            contestant = started(model, tool, threads, arguments.envs.resolve(), scratch)
            running.callback(contestant.end)
            contestant.wait_until_ready()
            contestants.append(contestant)
        for _ in range(arguments.repeats):
            for contestant in contestants:
                contestant.go(arguments.slot_seconds)
    print(f"{parameters:,} parameters")
    engine = contestants[0]
    for contestant in contestants:
        microseconds = [1e6 / slot.rate for slot in contestant.slots]
        ratios = [
            ours.rate / theirs.rate
            for ours, theirs in zip(engine.slots, contestant.slots, strict=True)
        ]
        spread = f"{statistics.median(ratios):.2f} × ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"  {contestant.name:<36} {statistics.median(microseconds):>10,.0f} µs  {spread}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=list(MAKERS), help="may be repeated")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--slot-seconds", type=float, default=1.0, help="a turn's length, roughly")
    parser.add_argument("--envs", type=Path, default=BENCHMARKS.parent / ".peers")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # ended from outside, it ends the contestants
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with TemporaryDirectory(prefix="peers-") as scratch:
        for model in arguments.model or list(MAKERS):
            race(model, arguments, Path(scratch))


if __name__ == "__main__":
    main()
