"""How to make a trainer, as a value that can travel to another process."""

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace

from torch import nn

from asyncfeded.core.messages import TrainTask
from asyncfeded.learning.compiled import CompiledTrainer
from asyncfeded.learning.datasets import TensorExamples, data_of
from asyncfeded.learning.local_training import CPU, LocalTraining
from asyncfeded.learning.trainer import Loss, TorchTrainer


@dataclass(frozen=True, slots=True)
class TrainerRecipe:
    """A module, the clients' data and their training; call it to make the trainer."""

    module: nn.Module
    datasets: Mapping[str, TensorExamples]
    training: LocalTraining
    loss: Loss
    seed: int

    @property
    def in_threads(self) -> bool:
        """Whether trainers run side by side in threads: compiled code frees the interpreter."""
        return self.training.kernel == "compiled"

    @property
    def only_here(self) -> bool:
        """Whether trainers must stay in this process: it holds a GPU."""
        return self.training.device != CPU

    def __call__(self) -> TorchTrainer | CompiledTrainer:
        """Make the trainer, which takes the module over."""
        kind = CompiledTrainer if self.training.kernel == "compiled" else TorchTrainer
        return kind(self.module, self.datasets, self.training, self.loss, self.seed)

    def warmed_up(self) -> TorchTrainer | CompiledTrainer:
        """Warm up on a throwaway trainer, which loads compiled code, then make the real one."""
        with suppress(Exception):  # an error will show again when the real one trains
            name, examples = next(iter(self.datasets.items()))
            few = slice(0, 2 * self.training.batch_size)
            some = {name: TensorExamples(examples.x[few], examples.y[few])}
            spare = replace(self.of_client(name), module=deepcopy(self.module), datasets=some)()
            spare(TrainTask(name, 1, spare.initial, 1))
        return self()

    def of_client(self, client_id: str) -> "TrainerRecipe":
        """The recipe of a single client, with its data alone."""
        optimizers = self.training.optimizers or {}
        own = {name: make for name, make in optimizers.items() if name == client_id}
        return replace(
            self,
            datasets={client_id: data_of(self.datasets, client_id)},
            training=replace(self.training, optimizers=own or None),
        )
