"""What can be trained: data, model and the paper's settings for them."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from torch import nn

from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.data import femnist, roles, shakespeare
from asyncfeded.data.federated import FederatedData
from asyncfeded.data.glyphs import femnist_standin
from asyncfeded.data.published_synthetic import CLASSES, FEATURES
from asyncfeded.data.role_files import load_roles
from asyncfeded.data.shakespeare import Split
from asyncfeded.data.synthetic import synthetic
from asyncfeded.data.verses import shakespeare_standin
from asyncfeded.learning.models import NextCharacter, cnn, mlp
from asyncfeded.learning.rounds import LocalTraining

PAPER_RULES = ("asyncfeded", "fedasync-constant", "fedasync-hinge", "fedavg", "fedprox")
"""The rules that the paper compares, its own first."""

TRAINING = LocalTraining(momentum=0.5, decay=0.995, decay_per="step")
"""What the training of the paper's tasks has in common.

The period of the decay and the batch sizes below are not in the paper: these fit the authors'
published curves.
"""

DATA_DIR_VARIABLE = "ASYNCFEDED_DATA_DIR"
FORMATS = {"femnist": "LEAF's json", "shakespeare": "a roles.json or LEAF's json"}

Widths = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DataChoice:
    """Which part of a data set a run uses; None stands for the task's own value.

    `sizes` are how many examples the clients have in the paper, where its devices are used.
    """

    clients: int
    seed: int
    min_examples: int | None = None
    max_examples: int | None = None
    data_dir: Path | None = None
    sizes: Sequence[int] | None = None
    split: Split | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A learning task: its data, its model, and the settings that go with it.

    `paper_sizes` are how many examples the paper's clients have, where these are not drawn.
    `has_splits` says whether the test data can be chosen by position as well as at random.
    """

    name: str
    make_data: Callable[[DataChoice], FederatedData]
    make_module: Callable[[Widths], nn.Module]
    widths: Widths
    training: LocalTraining
    paper_devices: str
    paper_sizes: tuple[int, ...] | None = None
    has_splits: bool = False
    rule_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name for tables and plots; a stand-in is never taken for the real thing."""
        standin = self.name.endswith("-standin")
        return f"{self.name} (generated, not the real data)" if standin else self.name


def find_task(name: str) -> Task:
    """The task of this name: one of the paper's, a stand-in, or synthetic-α-β for any α and β."""
    if name in NAMED_TASKS:
        return NAMED_TASKS[name]
    match = re.fullmatch(r"synthetic-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", name)
    if match is None:
        raise SettingError(
            f"task must be {', '.join(NAMED_TASKS)} or 'synthetic-α-β', such as 'synthetic-1-1'; "
            f"given {name!r}"
        )
    return _synthetic_task(name, float(match[1]), float(match[2]))


def data_folder(data_dir: Path | None) -> Path:
    """Where data sets lie: as given, as the environment says, or the user's data folder."""
    if data_dir is None:
        given = os.environ.get(DATA_DIR_VARIABLE)
        data_dir = Path(given) if given else user_data_path("asyncfeded")
    return data_dir.expanduser()


def dataset_folder(name: str, data_dir: Path | None) -> Path:
    """The folder of a data set, which must be there."""
    folder = data_folder(data_dir) / name
    if not folder.is_dir():
        raise FileError(
            f"task {name!r} needs data in {str(folder)!r}, which is not there: run 'asyncfeded "
            f"data fetch {name}', or put {FORMATS[name]} there, or say where it is with --data-dir "
            f"or {DATA_DIR_VARIABLE}; --task {name}-standin needs no data"
        )
    return folder


def _synthetic_task(name: str, alpha: float, beta: float) -> Task:
    def make_data(choice: DataChoice) -> FederatedData:
        _refuse_minimum(name, choice)
        _refuse_split(name, choice)
        return synthetic(alpha, beta, choice.clients, choice.seed, max_examples=choice.max_examples)

    return Task(
        name=name,
        make_data=make_data,
        make_module=lambda widths: mlp(FEATURES, widths, CLASSES),
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


def _femnist_data(choice: DataChoice) -> FederatedData:
    writers = femnist.load_writers(dataset_folder("femnist", choice.data_dir))
    return _of_writers("femnist", writers, choice, choice.min_examples or femnist.MIN_EXAMPLES)


def _femnist_standin_data(choice: DataChoice) -> FederatedData:
    _refuse_minimum("femnist-standin", choice)
    writers = femnist_standin(choice.clients, choice.seed, choice.sizes)
    return _of_writers("femnist-standin", writers, choice, min_examples=1)


def _of_writers(
    name: str, writers: femnist.Writers, choice: DataChoice, min_examples: int
) -> FederatedData:
    _refuse_split(name, choice)
    return femnist.femnist(
        writers,
        choice.clients,
        choice.seed,
        min_examples=min_examples,
        max_examples=choice.max_examples,
        sizes=choice.sizes,
        name=name,
    )


def _shakespeare_data(choice: DataChoice) -> FederatedData:
    found = load_roles(dataset_folder("shakespeare", choice.data_dir))
    minimum = choice.min_examples or shakespeare.MIN_EXAMPLES
    return _of_roles("shakespeare", found, choice, minimum)


def _shakespeare_standin_data(choice: DataChoice) -> FederatedData:
    _refuse_minimum("shakespeare-standin", choice)
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


def _refuse_split(name: str, choice: DataChoice) -> None:
    if choice.split is not None:
        raise SettingError(
            f"split must be 'auto' for task {name!r}; given {choice.split!r}: only the text of "
            "shakespeare and shakespeare-standin can be parted by position"
        )


def _refuse_minimum(name: str, choice: DataChoice) -> None:
    if choice.min_examples is not None:
        raise SettingError(
            f"min_examples chooses among the clients of real data; task {name!r} makes its own: "
            f"given {choice.min_examples}"
        )


_FEMNIST = Task(
    name="femnist",
    make_data=_femnist_data,
    make_module=lambda widths: cnn(widths, femnist.CLASSES),
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

_SHAKESPEARE = Task(
    name="shakespeare",
    make_data=_shakespeare_data,
    make_module=lambda widths: NextCharacter(*widths, roles.CLASSES),
    widths=(8, 32),
    training=replace(TRAINING, learning_rate=1.0, batch_size=256),
    paper_devices="paper-shakespeare",
    paper_sizes=shakespeare.PAPER_SIZES,
    has_splits=True,
    rule_settings={
        "asyncfeded": {"lam": 5.0, "eps": 10.0, "gamma_bar": 3.0, "kappa": 1.0},
        "fedasync-constant": {"alpha": 0.1},
        "fedasync-hinge": {"alpha": 0.1, "a": 15.0, "b": 15.0, "lag_in": "seconds"},
        "fedprox": {"mu": 0.01},
    },
)

NAMED_TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        _FEMNIST,
        _SHAKESPEARE,
        replace(_FEMNIST, name="femnist-standin", make_data=_femnist_standin_data),
        replace(_SHAKESPEARE, name="shakespeare-standin", make_data=_shakespeare_standin_data),
    )
}
"""The tasks on images and on text; a stand-in is the same task on generated data."""
