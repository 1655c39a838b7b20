"""FEMNIST: handwriting, a client per writer, and a small convolutional network."""

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncfeded.data import femnist
from asyncfeded.data.federated import FederatedData
from asyncfeded.tasks.folders import dataset_folder
from asyncfeded.tasks.paper_task import TRAINING, DataChoice, RunnableTask, Widths

if TYPE_CHECKING:
    from torch import nn


def _femnist_data(choice: DataChoice) -> FederatedData:
    writers = femnist.load_writers(dataset_folder("femnist", choice.data_dir))
    return _of_writers("femnist", writers, choice, choice.min_examples or femnist.MIN_EXAMPLES)


def _femnist_standin_data(choice: DataChoice) -> FederatedData:
    choice.refuse_minimum("femnist-standin")
    from asyncfeded.data.glyphs import femnist_standin

    writers = femnist_standin(choice.clients, choice.seed, choice.sizes)
    return _of_writers("femnist-standin", writers, choice, min_examples=1)


def _of_writers(
    name: str, writers: femnist.Writers, choice: DataChoice, min_examples: int
) -> FederatedData:
    choice.refuse_split(name)
    return femnist.femnist(
        writers,
        choice.clients,
        choice.seed,
        min_examples=min_examples,
        max_examples=choice.max_examples,
        sizes=choice.sizes,
        name=name,
    )


def _module(widths: Widths) -> "nn.Module":
    from asyncfeded.learning.models import cnn

    first, second = widths
    return cnn((first, second), femnist.CLASSES)


FEMNIST = RunnableTask(
    name="femnist",
    make_data=_femnist_data,
    make_module=_module,
    widths=(32, 64),
    training=replace(TRAINING, learning_rate=0.01, batch_size=32),
    paper_devices="paper-femnist",
    paper_sizes=femnist.PAPER_SIZES,
    rule_settings={
        "asyncfeded": {
            "lam": 1.0,
            "eps": 1.0,
            "gamma_bar": 3.0,
            "kappa": 0.05,
        },
        "fedasync-constant": {"alpha": 0.5},
        "fedasync-hinge": {"alpha": 0.5, "a": 0.5, "b": 0.5, "lag_in": "seconds"},
        "fedprox": {"mu": 1.0},
    },
)

FEMNIST_STANDIN = replace(FEMNIST, name="femnist-standin", make_data=_femnist_standin_data)
"""The same task on generated glyphs."""
