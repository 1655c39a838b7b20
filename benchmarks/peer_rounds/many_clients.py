"""A simulation with many clients in one tool: how fast, and how much memory; one line of JSON.

    python -m peer_rounds.many_clients --tool flgo --clients 1000 --at-work 10 --seconds 10

The work is the race's: the MLP of Synthetic-1-1, K = 10 mini-batches of 32, FedAsync (constant).
Clients share the data of 20, so that data take no memory of their own. `setup_seconds` is the
processor time until the first update has arrived. Memory is the peak, less what the process had
when the tool had been imported.
"""

import argparse
import json
import resource
import time
from importlib import import_module
from typing import get_args

import torch

from peer_rounds.protocol import claim_stdout
from peer_rounds.simulated import Tool, Work, begin, mixed_speed
from peer_rounds.workload import CLIENTS, MODELS, client_data

GIBIBYTE = 2**30
MOST_SECONDS = 600
"""Of processor time."""


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def shared_data(client: int) -> tuple[torch.Tensor, torch.Tensor]:
    return client_data("mlp", client % CLIENTS)


def measured(tool: Tool, clients: int, at_work: int, seconds: float) -> dict[str, float]:
    for client in range(CLIENTS):
        shared_data(client)
    import_module(f"peer_rounds.{tool}_simulation")
    before = peak_mebibytes()
    work = Work(MODELS["mlp"], shared_data, clients, at_work, mixed_speed)
    if tool == "engine":
        work = Work(
            MODELS["mlp"], shared_data, clients, at_work, mixed_speed, workers=2, compiled=True
        )
    started = time.process_time()
    simulation = begin(tool, work)
    simulation.updates(1)
    setup = time.process_time() - started
    updates, chunk = 0, 1
    started, used = time.perf_counter(), time.process_time()
    while (taken := time.perf_counter() - started) < seconds:
        updates += simulation.updates(chunk)
        chunk = min(2 * chunk, 64)
    return {
        "setup_seconds": setup,
        "updates": updates,
        "seconds": taken,
        "processor_seconds": time.process_time() - used,
        "mebibytes": peak_mebibytes() - before,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tool", choices=get_args(Tool), required=True)
    options.add_argument("--clients", type=int, required=True)
    options.add_argument("--at-work", type=int, required=True)
    options.add_argument("--seconds", type=float, required=True)
    options.add_argument("--gibibytes", type=float, required=True)
    arguments = options.parse_args()
    answers = claim_stdout()
    most = int(arguments.gibibytes * GIBIBYTE)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    torch.set_num_threads(1)
    figures = measured(arguments.tool, arguments.clients, arguments.at_work, arguments.seconds)
    print(json.dumps(figures), file=answers)


if __name__ == "__main__":
    main()
