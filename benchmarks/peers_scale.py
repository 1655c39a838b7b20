"""Updates per second and memory with few clients and with very many, in each tool.

    python benchmarks/peers_scale.py [--tool engine] [--clients 10 1000] [--repeats 1]

This project's engine (compiled training, two workers), APPFL's vsim and FLGo simulate FedAsync on
the MLP of Synthetic-1-1 with 10 and with 100 clients at work, of 10 (10 at work alone), 1,000,
100,000 and 10,000,000. Every case is a process of its own, which may take as many GiB of memory as
`--gibibytes` says. Each is given ten minutes; a tool that has failed with so many clients is not
tried with more. `begins after` is the time until the first update has arrived. What clients have
and how memory is taken: `peer_rounds/many_clients.py`; `scale.py` has data made on demand, too.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from peer_rounds.environments import environment_python

BENCHMARKS = Path(__file__).resolve().parent
TOOLS = {"engine": "this engine", "appfl": "APPFL 1.12.0 vsim", "flgo": "FLGo 0.4.4"}
CLIENTS = (10, 1_000, 100_000, 10_000_000)
AT_WORK = (10, 100)
LONGEST_SECONDS = 600.0


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
    try:
        done = subprocess.run(
            command,
            cwd=BENCHMARKS,
            capture_output=True,
            text=True,
            timeout=arguments.longest,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CaseFailedError(f"no result within {arguments.longest:g} s") from None
    if done.returncode < 0:
        raise CaseFailedError(f"ended by signal {-done.returncode}")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise CaseFailedError(lines[-1] if lines else f"exit code {done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def shown(runs: list[dict[str, float]]) -> str:
    rates = [run["updates"] / run["seconds"] for run in runs]
    spread = f" ({min(rates):,.3g} to {max(rates):,.3g})" if len(rates) > 1 else ""
    memory = statistics.median(run["mebibytes"] for run in runs)
    begins = statistics.median(run["setup_seconds"] for run in runs)
    rate = statistics.median(rates)
    rate_shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
    return f"{rate_shown}{spread} updates/s, {memory:,.0f} MiB, begins after {begins:,.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=list(TOOLS), help="may be repeated")
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--at-work", type=int, nargs="+", default=list(AT_WORK))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long updates are counted")
    parser.add_argument("--gibibytes", type=float, default=8.0, help="memory for a process")
    parser.add_argument("--longest", type=float, default=LONGEST_SECONDS, help="seconds for a case")
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
