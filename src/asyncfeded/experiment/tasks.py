"""What can be trained: data, model and the paper's settings for them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from asyncfeded.core.errors import SettingError
from asyncfeded.data.federated import FederatedData
from asyncfeded.data.synthetic import CLASSES, FEATURES, synthetic
from asyncfeded.learning.models import mlp
from asyncfeded.learning.trainer import LocalTraining
from asyncfeded.simulation.profiles import PAPER_ROUND_SECONDS

PAPER_RULES = ("asyncfeded", "fedasync-constant", "fedasync-hinge", "fedavg", "fedprox")
"""The rules that the paper compares, its own first."""

EXAMPLES_PER_ROUND_SECOND = 600
"""A client's examples per second of its K = 10 round on Synthetic-1-1.

In the authors' runs a round's time is proportional to the client's share of the data. At 600 the
smallest client, with 0.083 s, has 50 examples, the least that the recipe gives.
"""


@dataclass(frozen=True, slots=True)
class Task:
    """A learning task: its data, its model, and the settings that go with it."""

    name: str
    make_data: Callable[[int, int], FederatedData]
    make_module: Callable[[], nn.Module]
    training: LocalTraining
    paper_devices: str | None = None
    rule_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def find_task(name: str) -> Task:
    """The task of this name: synthetic-α-β for any α and β."""
    match = re.fullmatch(r"synthetic-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", name)
    if match is None:
        raise SettingError(f"task must be 'synthetic-α-β', such as 'synthetic-1-1'; given {name!r}")
    return _synthetic_task(name, float(match[1]), float(match[2]))


def _synthetic_task(name: str, alpha: float, beta: float) -> Task:
    paper_rounds = PAPER_ROUND_SECONDS["paper-synthetic"]

    def make_data(clients: int, seed: int) -> FederatedData:
        if clients != len(paper_rounds):
            return synthetic(alpha, beta, clients, seed)
        sizes = [round(EXAMPLES_PER_ROUND_SECOND * seconds) for seconds in paper_rounds]
        return synthetic(alpha, beta, clients, seed, num_examples=sizes)

    return Task(
        name=name,
        make_data=make_data,
        make_module=lambda: mlp(FEATURES, (200, 100), CLASSES),
        training=LocalTraining(learning_rate=0.01, momentum=0.5, decay=0.995),
        paper_devices="paper-synthetic",
        rule_settings={
            "asyncfeded": {"lam": 5.0, "eps": 5.0, "gamma_bar": 3.0, "kappa": 1.0},
            "fedasync-constant": {"alpha": 0.1},
            "fedasync-hinge": {"alpha": 0.1, "a": 5.0, "b": 5.0},
            "fedprox": {"mu": 0.1},
        },
    )
