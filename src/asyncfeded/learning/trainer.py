"""A client's local training, for any torch module."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples, data_of
from asyncfeded.learning.device import OnDevice, find_device, generator_of
from asyncfeded.learning.flat import FlatModule, split_like
from asyncfeded.learning.local_training import LocalTraining, OptimizerFactory
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.rounds import BATCHES, passes, split

Loss = Callable[[Tensor, Tensor], Tensor]


class TorchTrainer:
    """Trains a module on the data of the client that the task names.

    It is a `Train`: a call trains a round and returns the update. Momentum SGD runs on the flat
    vector. A client's own optimizer is made anew each round for the flat parameter, with its own
    learning rate. The update's figure `loss` is the mean loss over the examples visited, each with
    the weights of its step and without a proximal term.

    A round has the same bits in any process: it uses a single thread, the global generators of
    torch, Python and NumPy are keyed by (seed, client, round), and every buffer starts from the
    task's value or, if it is not persistent, from its first value. The trainer cannot see state
    that a module keeps in plain attributes: it must not change while the module trains.
    """

    kernel: Final = "torch"

    def __init__(
        self,
        module: nn.Module,
        datasets: Mapping[str, TensorExamples],
        training: LocalTraining | None = None,
        loss: Loss = nn.functional.cross_entropy,
        seed: int = 0,
    ) -> None:
        training = LocalTraining() if training is None else training
        self._optimizers = training.optimizers or {}
        for client_id in self._optimizers:
            if client_id not in datasets:
                raise SettingError(f"optimizers names client {client_id!r}, which has no data")
        device = self._device = find_device(training.device)
        self._on_device = OnDevice(device)
        self._generator = generator_of(device)
        self._flat = FlatModule(module, device)
        self._module = module
        self._datasets = datasets
        self._training = training
        self._loss = loss
        self._seed = seed
        self.schema = self._flat.schema
        self.initial = self._flat.collect().copy()
        self._start = torch.empty(self.schema.trained, dtype=torch.float32, device=device)
        self._velocity = torch.empty(self.schema.trained, dtype=torch.float32, device=device)
        self._weights = split_like(self._flat.vector, self._flat.trainable)
        self._starts = split_like(self._start, self._flat.trainable)
        self._velocities = split_like(self._velocity, self._flat.trainable)
        self._one = torch.ones((), dtype=torch.float32, device=device)

    def __call__(self, task: TrainTask) -> ClientUpdate:
        """Train a round from the task's parameters."""
        examples = self._on_device(data_of(self._datasets, task.client_id))
        seen = _Seen(set(range(len(self._flat.trainable))))
        key = randomness.key(self._seed, "torch", task.client_id, task.round)
        with reproducible(key, self._generator):
            self._flat.load(task.parameters)
            self._module.train()
            for parameter in self._flat.trainable:
                parameter.grad = None
            if task.proximal_mu:
                self._start.copy_(self._flat.vector[: self.schema.trained])
            if task.client_id in self._optimizers:
                self._train_with_optimizer(task, examples, self._optimizers[task.client_id], seen)
            else:
                self._train_with_momentum(task, examples, seen)
            delta = np.subtract(self._flat.collect(), task.parameters)
        if seen.unreached and not self._training.allow_unused:
            raise SettingError(
                f"parameter {self.schema.names[min(seen.unreached)]!r} got no gradient in a whole "
                "round, so it was not trained: freeze it with requires_grad_(False), or allow this "
                "with LocalTraining(allow_unused=True)"
            )
        return ClientUpdate(
            client_id=task.client_id,
            version=task.version,
            delta=delta,
            num_examples=len(examples),
            epochs=task.epochs,
            round=task.round,
            steps=seen.steps,
            figures={"loss": seen.loss / seen.visits},
        )

    def load(self, parameters: Vector) -> None:
        """Leave the module with these parameters."""
        self._flat.load(parameters)

    def _train_with_momentum(
        self, task: TrainTask, examples: TensorExamples, seen: "_Seen"
    ) -> None:
        """Momentum SGD: v ← m·v + ∇f(x) + μ·(x − x_start), then x ← x − η·v."""
        self._velocity.zero_()
        for rate, x, y in self._batches(task, examples):
            # The kernel of torch.optim.SGD(fused=True): one pass over memory per parameter.
            weights, velocities, gradients = self._gradients(x, y, task.proximal_mu, seen)
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
        self, task: TrainTask, examples: TensorExamples, make: OptimizerFactory, seen: "_Seen"
    ) -> None:
        """Let the client's own optimizer step on the flat parameter."""
        parameter = nn.Parameter(self._flat.vector[: self.schema.trained])
        optimizer = make([parameter])
        parameter.grad = self._velocity
        for _, x, y in self._batches(task, examples):
            self._velocity.zero_()
            _, places, gradients = self._gradients(x, y, task.proximal_mu, seen)
            torch._foreach_copy_(places, gradients)
            optimizer.step()

    def _gradients(
        self, x: Tensor, y: Tensor, proximal_mu: float, seen: "_Seen"
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The weights that a mini-batch moves, their velocities and their gradients.

        Without a proximal term, a weight that the loss does not reach stays where it is.
        """
        loss = self._loss(self._module(x), y)
        # Not autograd.grad: that stops at checkpoints, whose parameters it would leave untrained.
        loss.backward(self._one)
        parts = [parameter.grad for parameter in self._flat.trainable]
        for parameter in self._flat.trainable:
            parameter.grad = None
        reached = [index for index, part in enumerate(parts) if part is not None]
        seen.add(loss.item(), len(y), reached)
        if proximal_mu:
            gradients = [
                torch.zeros_like(weight) if part is None else part.contiguous()
                for weight, part in zip(self._weights, parts, strict=True)
            ]
            # Not in place: autograd may hand out one gradient for two parameters.
            pulls = torch._foreach_sub(self._weights, self._starts)
            pulled = list(torch._foreach_add(gradients, pulls, alpha=proximal_mu))
            return self._weights, self._velocities, pulled
        weights = [self._weights[index] for index in reached]
        velocities = [self._velocities[index] for index in reached]
        return weights, velocities, [part.contiguous() for part in parts if part is not None]

    def _batches(
        self, task: TrainTask, examples: TensorExamples
    ) -> Iterator[tuple[float, Tensor, Tensor]]:
        """The learning rate and mini-batch of every step of a round."""
        draw = randomness.generator(self._seed, BATCHES, task.client_id, task.round)
        for rates, places, sizes in passes(task, examples, self._training, draw):
            order = torch.from_numpy(places).to(self._device)
            batches = split(examples.x[order], examples.y[order], sizes)
            for rate, (x, y) in zip(rates, batches, strict=True):
                yield rate, x, y


@dataclass(slots=True)
class _Seen:
    """The counts of a round so far; `loss` is the sum over the examples visited."""

    unreached: set[int]
    """Parameters that have no gradient yet."""
    steps: int = 0
    visits: int = 0
    loss: float = 0.0

    def add(self, loss: float, examples: int, reached: list[int]) -> None:
        """Count a mini-batch: its mean loss, its size and the parameters that it reached."""
        self.steps += 1
        self.visits += examples
        self.loss += loss * examples
        if self.unreached:
            self.unreached.difference_update(reached)
