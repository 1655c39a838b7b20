"""A client's local training, for any torch module."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.flat import FlatModule, split_like
from asyncfeded.learning.reproducible import reproducible

Loss = Callable[[Tensor, Tensor], Tensor]
OptimizerFactory = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
Unit = Literal["epochs", "steps"]


@dataclass(frozen=True, slots=True)
class LocalTraining:
    """How clients train.

    `unit` says what K counts: passes over the client's data, or mini-batches. The learning rate
    of a client's n-th round is learning_rate · decayⁿ with `decay_per="round"`; with "epoch" it
    decays from pass to pass and starts again each round. Momentum starts from zero each round.
    """

    learning_rate: float = 0.01
    momentum: float = 0.5
    decay: float = 0.995
    decay_per: Literal["round", "epoch"] = "round"
    batch_size: int = 32
    unit: Unit = "epochs"

    def __post_init__(self) -> None:
        rate = self.learning_rate
        require(isfinite(rate) and rate > 0, "learning_rate", "a finite number above 0", rate)
        require(0 <= self.momentum < 1, "momentum", "at least 0 and below 1", self.momentum)
        require(0 < self.decay <= 1, "decay", "above 0 and at most 1", self.decay)
        require(
            self.decay_per in ("round", "epoch"), "decay_per", "'round' or 'epoch'", self.decay_per
        )
        require(self.batch_size >= 1, "batch_size", "at least 1", self.batch_size)
        require(self.unit in ("epochs", "steps"), "unit", "'epochs' or 'steps'", self.unit)

    def rate(self, round_number: int, epoch: int) -> float:
        """The learning rate in this pass of this round, both counted from 0."""
        return self.learning_rate * self.decay ** (
            round_number if self.decay_per == "round" else epoch
        )


class TorchTrainer:
    """Trains a module on the data of whichever client the task names.

    It is a `Train`: a call trains one round and returns the update. Momentum SGD runs on the
    flat vector; `optimizers` lets a client bring another optimizer instead, made anew each round
    for the one flat parameter, with a learning rate of its own. Everything random is keyed by
    (seed, client, round), and one thread is used, so that a round has the same bits in any
    process.
    """

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
        examples = self._datasets.get(task.client_id)
        if examples is None:
            raise SettingError(f"client {task.client_id!r} has no data")
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
        draw = randomness.generator(self._seed, "batches", task.client_id, task.round)
        steps_left = task.epochs if self._training.unit == "steps" else None
        epoch = 0
        while epoch < task.epochs if steps_left is None else steps_left > 0:
            rate = self._training.rate(task.round, epoch)
            order = examples.order(draw)
            for x, y in split(examples.x[order], examples.y[order], self._training.batch_size):
                if steps_left is not None:
                    if steps_left == 0:
                        return
                    steps_left -= 1
                yield rate, x, y
            epoch += 1


def split(x: Tensor, y: Tensor, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Consecutive mini-batches of a client's examples."""
    start = 0
    for size in batch_sizes(len(y), batch_size):
        yield x[start : start + size], y[start : start + size]
        start += size


def batch_sizes(num_examples: int, batch_size: int) -> list[int]:
    """The sizes of the mini-batches of one pass; a single last example joins those before it.

    Batch normalisation cannot be trained on a single example.
    """
    sizes = [batch_size] * (num_examples // batch_size)
    rest = num_examples % batch_size
    if rest == 1 and sizes:
        sizes[-1] += 1
    elif rest:
        sizes.append(rest)
    return sizes
