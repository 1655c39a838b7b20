"""Shakespeare: the next character of a play, a client per role, and two LSTM layers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asyncfeded.data import roles, shakespeare
from asyncfeded.data.federated import FederatedData
from asyncfeded.data.role_files import load_roles
from asyncfeded.data.shakespeare import Split
from asyncfeded.data.verses import shakespeare_standin
from asyncfeded.tasks.folders import dataset_folder
from asyncfeded.tasks.paper_task import TRAINING, DataChoice, RunnableTask, Widths

if TYPE_CHECKING:
    from torch import nn


def _shakespeare_data(choice: DataChoice) -> FederatedData:
    found = load_roles(dataset_folder("shakespeare", choice.data_dir))
    minimum = choice.min_examples or shakespeare.MIN_EXAMPLES
    return _of_roles("shakespeare", found, choice, minimum)


def _shakespeare_standin_data(choice: DataChoice) -> FederatedData:
    choice.refuse_minimum("shakespeare-standin")
    made_up = shakespeare_standin(choice.clients, choice.seed)
    return _of_roles("shakespeare-standin", made_up, choice, min_examples=1)


def _of_roles(
    name: str, found: roles.Roles, choice: DataChoice, min_examples: int
) -> FederatedData:
    return shakespeare.shakespeare(
        found,
        choice.clients,
        choice.seed,
        min_examples=min_examples,
        max_examples=_windows_per_role(choice),
        split=split_of(choice),
        name=name,
    )


def _windows_per_role(choice: DataChoice) -> int | Sequence[int]:
    """As many as in the paper, where its devices are used; capped as given, or at 1,000."""
    if choice.sizes is None:
        return choice.max_examples or shakespeare.MAX_EXAMPLES
    return [min(size, choice.max_examples or size) for size in choice.sizes]


def split_of(choice: DataChoice) -> Split:
    """How a role's windows are parted: as given, else as in the paper with its devices only."""
    return choice.split or ("position" if choice.sizes is None else "random")


def _module(widths: Widths) -> "nn.Module":
    from asyncfeded.learning.models import NextCharacter

    embedding, hidden = widths
    return NextCharacter(embedding, hidden, roles.CLASSES)


SHAKESPEARE = RunnableTask(
    name="shakespeare",
    make_data=_shakespeare_data,
    make_module=_module,
    widths=(8, 32),
    training=replace(TRAINING, learning_rate=1.0, batch_size=256),
    paper_devices="paper-shakespeare",
    paper_sizes=shakespeare.PAPER_SIZES,
    choose_split=split_of,
    rule_settings={
        "asyncfeded": {"lam": 5.0, "eps": 10.0, "gamma_bar": 3.0, "kappa": 1.0},
        "fedasync-constant": {"alpha": 0.1},
        "fedasync-hinge": {"alpha": 0.1, "a": 15.0, "b": 15.0, "lag_in": "seconds"},
        "fedprox": {"mu": 0.01},
    },
)

SHAKESPEARE_STANDIN = replace(
    SHAKESPEARE, name="shakespeare-standin", make_data=_shakespeare_standin_data
)
"""The same task on generated verses."""
