"""Synthetic(α, β): generated data, and three fully connected layers."""

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncfeded.data.federated import FederatedData
from asyncfeded.data.published_synthetic import CLASSES, FEATURES
from asyncfeded.data.synthetic import synthetic
from asyncfeded.tasks.paper_task import TRAINING, DataChoice, RunnableTask, Widths

if TYPE_CHECKING:
    from torch import nn


def synthetic_task(name: str, alpha: float, beta: float) -> RunnableTask:
    """The task synthetic-α-β."""

    def make_data(choice: DataChoice) -> FederatedData:
        choice.refuse_minimum(name)
        choice.refuse_split(name)
        return synthetic(alpha, beta, choice.clients, choice.seed, max_examples=choice.max_examples)

    return RunnableTask(
        name=name,
        make_data=make_data,
        make_module=_module,
        widths=(400, 200),
        training=replace(TRAINING, learning_rate=0.01, batch_size=256),
        paper_devices="paper-synthetic",
        rule_settings={
            "asyncfeded": {"lam": 5.0, "eps": 5.0, "gamma_bar": 3.0, "kappa": 1.0},
            "fedasync-constant": {"alpha": 0.1},
            "fedasync-hinge": {"alpha": 0.1, "a": 5.0, "b": 5.0, "lag_in": "seconds"},
            "fedprox": {"mu": 0.1},
        },
    )


def _module(widths: Widths) -> "nn.Module":
    from asyncfeded.learning.models import mlp

    first, second = widths
    return mlp(FEATURES, (first, second), CLASSES)
