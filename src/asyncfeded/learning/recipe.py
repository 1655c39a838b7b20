"""How to make a trainer, as a value that can travel to another process."""

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal

from torch import nn

from asyncfeded.core.errors import require
from asyncfeded.core.messages import TrainTask
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples, data_of
from asyncfeded.learning.rounds import LocalTraining
from asyncfeded.learning.trainer import Loss, OptimizerFactory, TorchTrainer

Kernel = Literal["torch", "compiled"]


@dataclass(frozen=True, slots=True)
class TrainerRecipe:
    """A module, the clients' data and how they train; call it to have it made."""

    module: nn.Module
    datasets: Mapping[str, TensorExamples]
    training: LocalTraining
    loss: Loss
    optimizers: Mapping[str, OptimizerFactory] | None
    seed: int
    kernel: Kernel

    def __call__(self) -> TorchTrainer | CompiledTrainer:
        """Make the trainer, which takes the module into its hands."""
        if self.kernel == "compiled":
            require(
                not self.optimizers, "optimizers", "none for kernel 'compiled'", self.optimizers
            )
            return CompiledTrainer(self.module, self.datasets, self.training, self.loss, self.seed)
        require(self.kernel == "torch", "kernel", "'torch' or 'compiled'", self.kernel)
        return TorchTrainer(
            self.module, self.datasets, self.training, self.loss, self.optimizers, self.seed
        )

    def warmed_up(self) -> TorchTrainer | CompiledTrainer:
        """Make the trainer when another like it has trained a little: that loads compiled code."""
        with suppress(Exception):  # what is wrong with it shows when it is asked to train
            name, examples = next(iter(self.datasets.items()))
            few = slice(0, 2 * self.training.batch_size)
            some = {name: TensorExamples(examples.x[few], examples.y[few])}
            other = replace(self, module=deepcopy(self.module), datasets=some)()
            other(TrainTask(name, 1, other.initial, 1))
        return self()

    def of_client(self, client_id: str) -> "TrainerRecipe":
        """The same for one client alone, with no other's data."""
        return replace(self, datasets={client_id: data_of(self.datasets, client_id)})
