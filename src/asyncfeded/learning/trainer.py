"""A client's local training, for any torch module."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples, data_of
from asyncfeded.learning.flat import FlatModule, split_like
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.rounds import BATCHES, LocalTraining, passes, split

Loss = Callable[[Tensor, Tensor], Tensor]
OptimizerFactory = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


class TorchTrainer:
    """Trains a module on the data of whichever client the task names.

    It is a `Train`: a call trains one round and returns the update. Momentum SGD runs on the
    flat vector; `optimizers` lets a client bring another optimizer instead, made anew each round
    for the one flat parameter, with a learning rate of its own. Everything random is keyed by
    (seed, client, round), and one thread is used, so that a round has the same bits in any
    process.
    """

    kernel: Final = "torch"

    def __init__(
        self,
        module: nn.Module,
        datasets: Mapping[str, TensorExamples],
        training: LocalTraining | None = None,
        loss: Loss = nn.functional.cross_entropy,
        optimizers: Mapping[str, OptimizerFactory] | None = None,
        seed: int = 0,
    ) -> None:
        self._flat = FlatModule(module)
        self._module = module
        self._datasets = datasets
        self._training = LocalTraining() if training is None else training
        self._loss = loss
        self._optimizers = {} if optimizers is None else optimizers
        for client_id in self._optimizers:
            if client_id not in datasets:
                raise SettingError(f"optimizers names client {client_id!r}, which has no data")
        self._seed = seed
        self.schema = self._flat.schema
        self.initial = self._flat.collect().copy()
        self._start = torch.empty(self.schema.size)
        self._velocity = torch.empty(self.schema.trained)
        self._weights = split_like(self._flat.vector, self._flat.trainable)
        self._starts = split_like(self._start, self._flat.trainable)
        self._velocities = split_like(self._velocity, self._flat.trainable)
        self._one = torch.ones(())

    def __call__(self, task: TrainTask) -> ClientUpdate:
        """Train one round from the task's parameters."""
        examples = data_of(self._datasets, task.client_id)
        with reproducible(randomness.key(self._seed, "torch", task.client_id, task.round)):
            self._flat.load(task.parameters)
            self._module.train()
            if task.proximal_mu:
                self._start.copy_(self._flat.vector)
            if task.client_id in self._optimizers:
                self._train_with_optimizer(task, examples, self._optimizers[task.client_id])
            else:
                self._train_with_momentum(task, examples)
            delta = np.subtract(self._flat.collect(), task.parameters)
        return ClientUpdate(
            client_id=task.client_id,
            version=task.version,
            delta=delta,
            num_examples=len(examples),
            epochs=task.epochs,
            round=task.round,
        )

    def load(self, parameters: Vector) -> None:
        """Leave the module with these parameters."""
        self._flat.load(parameters)

    def _train_with_momentum(self, task: TrainTask, examples: TensorExamples) -> None:
        """Momentum SGD: v ← m·v + ∇f(x) + μ·(x − x_start), then x ← x − η·v."""
        self._velocity.zero_()
        for rate, x, y in self._batches(task, examples):
            # The kernel of torch.optim.SGD(fused=True): one pass over memory per parameter.
            weights, velocities, gradients = self._gradients(x, y, task.proximal_mu)
            torch._fused_sgd_(
                weights,
                gradients,
                velocities if self._training.momentum else [],
                weight_decay=0.0,
                momentum=self._training.momentum,
                lr=rate,
                dampening=0.0,
                nesterov=False,
                maximize=False,
                is_first_step=False,
            )

    def _train_with_optimizer(
        self, task: TrainTask, examples: TensorExamples, make: OptimizerFactory
    ) -> None:
        """Let an optimizer of the client's own step on the one flat parameter."""
        parameter = nn.Parameter(self._flat.vector[: self.schema.trained])
        optimizer = make([parameter])
        parameter.grad = self._velocity
        for _, x, y in self._batches(task, examples):
            self._velocity.zero_()
            _, places, gradients = self._gradients(x, y, task.proximal_mu)
            torch._foreach_copy_(places, gradients)
            optimizer.step()

    def _gradients(
        self, x: Tensor, y: Tensor, proximal_mu: float
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The weights that a mini-batch's loss reaches, their velocities and their gradients."""
        loss = self._loss(self._module(x), y)
        parts = torch.autograd.grad(loss, self._flat.trainable, self._one, allow_unused=True)
        reached = [index for index, part in enumerate(parts) if part is not None]
        weights = [self._weights[index] for index in reached]
        velocities = [self._velocities[index] for index in reached]
        gradients = [parts[index].contiguous() for index in reached]
        if proximal_mu:
            starts = [self._starts[index] for index in reached]
            # Not in place: autograd may hand out one gradient for two parameters.
            pulls = torch._foreach_sub(weights, starts)
            gradients = list(torch._foreach_add(gradients, pulls, alpha=proximal_mu))
        return weights, velocities, gradients

    def _batches(
        self, task: TrainTask, examples: TensorExamples
    ) -> Iterator[tuple[float, Tensor, Tensor]]:
        """The learning rate and mini-batch of every step of a round."""
        draw = randomness.generator(self._seed, BATCHES, task.client_id, task.round)
        for rate, places, sizes in passes(task, examples, self._training, draw):
            order = torch.from_numpy(places)
            for x, y in split(examples.x[order], examples.y[order], sizes):
                yield rate, x, y
