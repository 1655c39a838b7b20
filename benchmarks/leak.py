"""What Shakespeare's random test split is worth: one model, measured with and without the leak.

    python benchmarks/leak.py [--task shakespeare] [--rounds 10] [--every 2]

FedAvg trains the task's model on the paper's data: ten roles, 19,980 windows, ten passes a round.
The model is measured on the random tenth of the same windows, where neighbours of nearly every
window were trained on, and on the last tenth of the same roles' text, of which no character was.
"""

import argparse
import time

import torch
from torch import nn

from asyncfeded import Virtual, randomness
from asyncfeded.data.federated import Examples
from asyncfeded.experiment.run import as_tensors, load_data
from asyncfeded.experiment.settings import run_settings
from asyncfeded.front_door import federate
from asyncfeded.learning.datasets import TensorExamples, join
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.rules.fedavg import fedavg
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.tasks.registry import find_task

ROUND_SECONDS = 1.0
"""Of virtual time, for every client alike."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="shakespeare")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--every", type=int, default=2, help="rounds between measurements")
    arguments = parser.parse_args()
    task = find_task(arguments.task)
    paper = load_data(run_settings({"task": task.name, "split": "random"}))
    apart = load_data(run_settings({"task": task.name, "split": "position"}))
    assert paper.sources == apart.sources
    train = {name: as_tensors(examples) for name, examples in paper.train.items()}
    parts = {
        "random tenth": union(list(paper.test.values())),
        "other text": union(list(apart.test.values())),
    }
    with reproducible(randomness.key(0, "initial-model")):
        module = task.make_module(task.widths)
    same = dict.fromkeys(train, Device(ROUND_SECONDS / 10, ROUND_SECONDS))
    print(", ".join(f"{name}: {len(part)} windows" for name, part in parts.items()))
    started = time.perf_counter()
    for done in range(0, arguments.rounds, arguments.every):
        # FedAvg keeps nothing between rounds but the model, so a run can go on from the last one.
        federate(
            module,
            train,
            rule=fedavg(),
            test=(parts["random tenth"].x, parts["random tenth"].y),
            seconds=(arguments.every + 0.5) * ROUND_SECONDS,
            evaluate_every=arguments.every * ROUND_SECONDS,
            seed=done,
            training=task.training,
            world=Virtual(DeviceModel(same, jitter=0.0)),
        )
        shown = ", ".join(f"{name} {accuracy(module, part):.1%}" for name, part in parts.items())
        minutes = (time.perf_counter() - started) / 60
        print(f"round {done + arguments.every}: {shown} ({minutes:.1f} min)", flush=True)


def accuracy(module: nn.Module, examples: TensorExamples) -> float:
    with torch.no_grad():
        right = [
            int((module(x).argmax(dim=1) == y).sum())
            for x, y in zip(examples.x.split(512), examples.y.split(512), strict=True)
        ]
    return sum(right) / len(examples)


def union(parts: list[Examples]) -> TensorExamples:
    return join([as_tensors(part) for part in parts])


if __name__ == "__main__":
    main()
