"""What the paper's tasks are: data, a model, and the settings that go with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncfeded.core.errors import SettingError
from asyncfeded.data.federated import FederatedData
from asyncfeded.data.shakespeare import Split
from asyncfeded.learning.local_training import LocalTraining

if TYPE_CHECKING:
    from torch import nn

    from asyncfeded.learning.evaluation import Metric
    from asyncfeded.learning.trainer import Loss

PAPER_RULES = ("asyncfeded", "fedasync-constant", "fedasync-hinge", "fedavg", "fedprox")
"""The rules that the paper compares, its own first."""

TRAINING = LocalTraining(momentum=0.5, decay=0.995, decay_per="step")
"""What the training of the paper's tasks has in common.

The period of the decay and the tasks' batch sizes are not in the paper: these fit the authors'
published curves.
"""

Widths = tuple[int, ...]


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

    def refuse_split(self, task: str) -> None:
        """Refuse a way of parting that this task does not have."""
        if self.split is not None:
            raise SettingError(
                f"split must be 'auto' for task {task!r}; given {self.split!r}: only the text of "
                "shakespeare and shakespeare-standin can be parted by position"
            )

    def refuse_minimum(self, task: str) -> None:
        """Refuse to choose among clients where a task makes its own."""
        if self.min_examples is not None:
            raise SettingError(
                f"min_examples chooses among the clients of real data; task {task!r} makes its "
                f"own: given {self.min_examples}"
            )


@dataclass(frozen=True, slots=True)
class RunnableTask:
    """A learning task as a run uses it: how its data and its model are made, and its settings.

    `paper_devices` names the paper's devices for it, where there are such; `paper_sizes` says how
    many examples the paper's clients have, where these are not drawn. `choose_split` says how the
    test data are parted, for a task that has several ways. Without a `loss`, it is cross-entropy.
    """

    name: str
    make_data: Callable[[DataChoice], FederatedData]
    make_module: "Callable[[Widths], nn.Module]"
    widths: Widths
    training: LocalTraining
    paper_devices: str = "heterogeneous"
    paper_sizes: tuple[int, ...] | None = None
    choose_split: Callable[[DataChoice], Split] | None = None
    rule_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    loss: "Loss | None" = None
    metrics: "Mapping[str, Metric] | None" = None
    own: bool = False
    """Whether it is a user's: its model and data are made in ways that we do not know."""

    @property
    def title(self) -> str:
        """The name for tables and plots; a stand-in is never taken for the real thing."""
        standin = self.name.endswith("-standin")
        return f"{self.name} (generated, not the real data)" if standin else self.name
