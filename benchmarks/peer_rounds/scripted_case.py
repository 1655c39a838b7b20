"""A case small enough to be worked by hand, in one tool; answers with one line of JSON.

    python -m peer_rounds.scripted_case --tool engine

Three clients, one parameter x, which is 0 at first. Client i wants x to be its target c_i: its loss
is (x − c_i)², of which a step of full-batch gradient descent at the learning rate 1/4 goes half of
the way: x ← (x + c_i) / 2. Nothing is random. A round of the clients takes 3, 4 and 5 units; their
targets are 8, 16 and −8. With every rule in turn, nine updates arrive.
"""

import argparse
import json
from typing import get_args

import torch
from torch import Tensor, nn

from peer_rounds.protocol import claim_stdout
from peer_rounds.simulated import Rule, Tool, Work, begin

UNITS = (3, 4, 5)
TARGETS = (8.0, 16.0, -8.0)
ALPHA = 0.5
LAG_POWER = 1.0
HINGE_SLOPE, HINGE_KNEE = 2, 1
BUFFER = 2
ARRIVALS = 9


def make_module() -> nn.Module:
    """One weight, which is 0."""
    module = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(module.weight)
    return module


def data_of(client: int) -> tuple[Tensor, Tensor]:
    return torch.ones(1, 1), torch.full((1, 1), TARGETS[client])


def scripted_work(rule: Rule) -> Work:
    lag = {"fedasync-polynomial": LAG_POWER, "fedbuff": 0.5}
    return Work(
        make_module,
        data_of,
        len(UNITS),
        len(UNITS),
        UNITS.__getitem__,
        rule,
        ALPHA if rule != "fedbuff" else 1.0,
        lag.get(rule, HINGE_SLOPE),
        HINGE_KNEE,
        BUFFER,
        batch_size=1,
        steps=1,
        learning_rate=0.25,
        momentum=0.0,
        shuffles=False,
        loss=nn.functional.mse_loss,
    )


def carried_out(tool: Tool, rule: Rule) -> list[dict[str, object]]:
    """When whose updates arrive, and the version after that."""
    case = begin(tool, scripted_work(rule))
    seen: list[dict[str, object]] = []
    count = 0
    while count < ARRIVALS:
        arrived = case.next_arrival()
        count += len(arrived.clients)
        version = case.parameters().item()
        seen.append({"units": arrived.units, "clients": arrived.clients, "version": version})
    return seen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tool", choices=get_args(Tool), required=True)
    tool = options.parse_args().tool
    answers = claim_stdout()
    print(json.dumps({rule: carried_out(tool, rule) for rule in get_args(Rule)}), file=answers)


if __name__ == "__main__":
    main()
