"""Updates per second and memory with few clients and with very many, in each tool.

    python benchmarks/peers_scale.py [--tool engine] [--clients 10 1000] [--repeats 1]

This project's engine (compiled training, two workers), APPFL's vsim and FLGo simulate FedAsync on
the MLP of Synthetic-1-1 with 10 and with 100 clients at work, of 10 (10 at work alone), 1,000,
100,000 and 10,000,000. Every case is a process of its own, which may take as many GiB of memory as
`--gibibytes` says, and ten minutes of processor time. A tool that has failed with so many clients
is not tried with more. Beside updates per second stands the processor time of one, which other
users of the machine change less, and that until the first update has arrived. What clients have
and how memory is taken: `peer_rounds/many_clients.py`; `scale.py` has data made on demand, too.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from peer_rounds.environments import environment_python

BENCHMARKS = Path(__file__).resolve().parent
TOOLS = {"engine": "this engine", "appfl": "APPFL 1.12.0 vsim", "flgo": "FLGo 0.4.4"}
CLIENTS = (10, 1_000, 100_000, 10_000_000)
AT_WORK = (10, 100)


class CaseFailedError(Exception):
    """A tool did not carry out a case; the message says what it said last."""


def figures_of(
    tool: str, clients: int, at_work: int, arguments: argparse.Namespace
) -> dict[str, float]:
    python = sys.executable
    if tool != "engine":
        python = str(environment_python(tool, arguments.envs.resolve()))
    command = [python, "-m", "peer_rounds.many_clients", "--tool", tool]
    command += ["--clients", str(clients), "--at-work", str(at_work)]
    command += ["--seconds", str(arguments.seconds), "--gibibytes", str(arguments.gibibytes)]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        raise CaseFailedError("took ten minutes of processor time")
    if done.returncode < 0:
        raise CaseFailedError(f"ended by signal {-done.returncode}")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise CaseFailedError(lines[-1] if lines else f"exit code {done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def shown(runs: list[dict[str, float]]) -> str:
    def median(figure: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(figure(run) for run in runs)

    rate = median(lambda run: run["updates"] / run["seconds"])
    cost = [1e3 * run["processor_seconds"] / run["updates"] for run in runs]
    return (
        f"{rate:,.3g} updates/s, {statistics.median(cost):,.3g} ms each of processor time "
        f"({min(cost):,.3g} to {max(cost):,.3g}), {median(lambda run: run['mebibytes']):,.0f} MiB, "
        f"begins after {median(lambda run: run['setup_seconds']):,.1f} s of it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=list(TOOLS), help="may be repeated")
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--at-work", type=int, nargs="+", default=list(AT_WORK))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long updates are counted")
    parser.add_argument("--gibibytes", type=float, default=8.0, help="memory for a process")
    parser.add_argument("--envs", type=Path, default=BENCHMARKS.parent / ".peers")
    arguments = parser.parse_args()
    for tool in arguments.tool or list(TOOLS):
        for at_work in arguments.at_work:
            for clients in arguments.clients:
                if at_work > clients:
                    continue
                case = f"{TOOLS[tool]}, {clients:,} clients, {at_work} at work"
                try:
                    runs = [
                        figures_of(tool, clients, at_work, arguments)
                        for _ in range(arguments.repeats)
                    ]
                except CaseFailedError as error:
                    print(f"{case}: failed: {error}", flush=True)
                    break
                print(f"{case}: {shown(runs)}", flush=True)


if __name__ == "__main__":
    main()
