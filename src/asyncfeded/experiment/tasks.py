"""What can be trained: data, model and the paper's settings for them."""

import os
import re
import sys
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
from asyncfeded.data.role_files import load_roles
from asyncfeded.data.synthetic import CLASSES, FEATURES, synthetic
from asyncfeded.data.verses import shakespeare_standin
from asyncfeded.learning.models import NextCharacter, cnn, mlp
from asyncfeded.learning.rounds import LocalTraining

PAPER_RULES = ("asyncfeded", "fedasync-constant", "fedasync-hinge", "fedavg", "fedprox")
"""The rules that the paper compares, its own first."""

EXAMPLES_PER_ROUND_SECOND = 600
"""A client's examples per second of its K = 10 round on Synthetic-1-1.

In the authors' runs a round's time is proportional to the client's share of the data. At 600 the
smallest client, with 0.083 s, has 50 examples, the least that the recipe gives.
"""

WINDOWS_PER_ROUND_SECOND = 100
"""The same on Shakespeare: 480 to 2,470 windows per role, 1,109 on average.

All windows of a role would be ten times as many, and share 79 of 80 characters with their
neighbours.
"""

DATA_DIR_VARIABLE = "ASYNCFEDED_DATA_DIR"
FORMATS = {"femnist": "LEAF's json", "shakespeare": "a roles.json or LEAF's json"}

Widths = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DataChoice:
    """Which part of a data set a run uses; None stands for the task's own value.

    `round_seconds` are the round times of the paper's devices, where these are used: the paper's
    clients have data in proportion.
    """

    clients: int
    seed: int
    min_examples: int | None = None
    max_examples: int | None = None
    data_dir: Path | None = None
    round_seconds: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A learning task: its data, its model, and the settings that go with it."""

    name: str
    make_data: Callable[[DataChoice], FederatedData]
    make_module: Callable[[Widths], nn.Module]
    widths: Widths
    training: LocalTraining
    paper_devices: str
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
        sizes = None
        if choice.round_seconds is not None:
            most = choice.max_examples or sys.maxsize
            drawn = (round(EXAMPLES_PER_ROUND_SECOND * time) for time in choice.round_seconds)
            sizes = [min(most, size) for size in drawn]
        return synthetic(
            alpha,
            beta,
            choice.clients,
            choice.seed,
            num_examples=sizes,
            max_examples=choice.max_examples,
        )

    return Task(
        name=name,
        make_data=make_data,
        make_module=lambda widths: mlp(FEATURES, widths, CLASSES),
        widths=(200, 100),
        training=LocalTraining(learning_rate=0.01, momentum=0.5, decay=0.995),
        paper_devices="paper-synthetic",
        rule_settings={
            "asyncfeded": {"lam": 5.0, "eps": 5.0, "gamma_bar": 3.0, "kappa": 1.0},
            "fedasync-constant": {"alpha": 0.1},
            "fedasync-hinge": {"alpha": 0.1, "a": 5.0, "b": 5.0},
            "fedprox": {"mu": 0.1},
        },
    )


def _femnist_data(choice: DataChoice) -> FederatedData:
    writers = femnist.load_writers(dataset_folder("femnist", choice.data_dir))
    return _of_writers("femnist", writers, choice, choice.min_examples or femnist.MIN_EXAMPLES)


def _femnist_standin_data(choice: DataChoice) -> FederatedData:
    _refuse_minimum("femnist-standin", choice)
    writers = femnist_standin(choice.clients, choice.seed)
    return _of_writers("femnist-standin", writers, choice, min_examples=1)


def _of_writers(
    name: str, writers: femnist.Writers, choice: DataChoice, min_examples: int
) -> FederatedData:
    return femnist.femnist(
        writers,
        choice.clients,
        choice.seed,
        min_examples=min_examples,
        max_examples=choice.max_examples,
        round_seconds=choice.round_seconds,
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
        name=name,
    )


def _windows_per_role(choice: DataChoice) -> int | Sequence[int]:
    """As given; otherwise in proportion to the paper's round times, where there are some."""
    if choice.max_examples is not None:
        return choice.max_examples
    if choice.round_seconds is None:
        return shakespeare.MAX_EXAMPLES
    return [round(WINDOWS_PER_ROUND_SECOND * seconds) for seconds in choice.round_seconds]


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
    widths=(16, 32),
    training=LocalTraining(learning_rate=0.01, momentum=0.5, decay=0.995),
    paper_devices="paper-femnist",
    rule_settings={
        "asyncfeded": {
            "lam": 1.0,
            "eps": 1.0,
            "gamma_bar": 3.0,
            "kappa": 0.05,
            "rounding": "carry",
        },
        "fedasync-constant": {"alpha": 0.5},
        "fedasync-hinge": {"alpha": 0.5, "a": 0.5, "b": 0.5},
        "fedprox": {"mu": 1.0},
    },
)

_SHAKESPEARE = Task(
    name="shakespeare",
    make_data=_shakespeare_data,
    make_module=lambda widths: NextCharacter(*widths, roles.CLASSES),
    widths=(8, 32),
    training=LocalTraining(learning_rate=1.0, momentum=0.5, decay=0.995),
    paper_devices="paper-shakespeare",
    rule_settings={
        "asyncfeded": {"lam": 5.0, "eps": 10.0, "gamma_bar": 3.0, "kappa": 1.0},
        "fedasync-constant": {"alpha": 0.1},
        "fedasync-hinge": {"alpha": 0.1, "a": 15.0, "b": 15.0},
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
