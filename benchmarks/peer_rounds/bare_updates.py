"""Updates of FedAsync in one tool, whose training adds a constant: for benchmarks/peers_cost.py."""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import get_args

import torch
from torch import nn

from peer_rounds.protocol import claim_stdout, serve
from peer_rounds.simulated import Tool, Work, begin, mixed_speed
from peer_rounds.workload import CLIENTS, MODELS, client_data

CONSTANT = 1e-3


def wide() -> nn.Module:
    """About a million parameters."""
    return nn.Sequential(
        nn.Linear(60, 943), nn.ReLU(), nn.Linear(943, 1000), nn.ReLU(), nn.Linear(1000, 10)
    )


MAKERS: Mapping[str, Callable[[], nn.Module]] = {"mlp": MODELS["mlp"], "wide": wide}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tool", choices=get_args(Tool), required=True)
    options.add_argument("--model", choices=list(MAKERS), required=True)
    options.add_argument("--threads", type=int, required=True)
    arguments = options.parse_args()
    answers = claim_stdout()
    torch.set_num_threads(arguments.threads)
    work = Work(
        MAKERS[arguments.model],
        lambda client: client_data("mlp", client),
        CLIENTS,
        CLIENTS,
        mixed_speed,
        constant=CONSTANT,
    )
    simulation = begin(arguments.tool, work)
    torch.set_num_threads(arguments.threads)  # FLGo sets one
    serve(answers, simulation.updates, "", clock=time.process_time)


if __name__ == "__main__":
    main()
