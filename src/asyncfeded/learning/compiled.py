"""A client's local training for small models: whole passes without a step of Python."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from torch import nn

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, TrainingError
from asyncfeded.core.messages import ClientUpdate, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.learning import dense
from asyncfeded.learning.chain import Layer, read_chain
from asyncfeded.learning.datasets import TensorExamples, data_of
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.rounds import BATCHES, Pass, passes
from asyncfeded.learning.trainer import Loss

VISITS_AT_ONCE = 1_000_000
"""The number of visits to examples that are listed before the kernel carries them out."""
KEPT_ARRAYS = 256
"""The number of clients whose examples are kept in the kernel's form."""
NO_LABELS = np.empty(0, dtype=np.int64)
NO_VALUES = np.empty((0, 0), dtype=np.float32)


class _Rooms(threading.local):
    """Memory for the training of one round, per thread."""

    def __init__(self, parameters: int, widths: Sequence[int]) -> None:
        self._widths = widths
        self._batch = 0
        self._vectors = [np.zeros(parameters, dtype=np.float32) for _ in range(3)]
        self._room = self.room_for(1)

    def room_for(self, batch: int) -> dense.Room:
        """Memory for mini-batches of `batch` examples."""
        if batch > self._batch:
            self._batch = batch
            outputs = np.zeros(batch * sum(self._widths), dtype=np.float32)
            errors = np.zeros(3 * batch * max(self._widths), dtype=np.float32)
            model, velocity, gradient = self._vectors
            self._room = dense.Room(model, velocity, gradient, outputs, errors)
        return self._room


class CompiledTrainer:
    """Trains a chain of fully connected layers as `TorchTrainer` does, up to rounding.

    It is a `Train`: same mini-batches, same momentum SGD on the same flat vector; only the last
    bits of a round differ. It releases the interpreter's lock and may be called from several
    threads at once; a round has the same bits in any of them.
    """

    kernel: Final = "compiled"

    def __init__(
        self,
        module: nn.Module,
        datasets: Mapping[str, TensorExamples],
        training: LocalTraining | None = None,
        loss: Loss = nn.functional.cross_entropy,
        seed: int = 0,
    ) -> None:
        self._chain = read_chain(module)
        self._squared_error = _is_squared_error(loss)
        self._flat = FlatModule(module)
        self._datasets = datasets
        self._training = LocalTraining() if training is None else training
        self._seed = seed
        self._layers = _table(self._chain.layers, self._flat)
        self.schema = self._flat.schema
        self.initial = self._flat.collect().copy()
        widths = [int(self._layers[0, dense.INPUTS]), *map(int, self._layers[:, dense.OUTPUTS])]
        self._rooms = _Rooms(self.schema.size, widths)
        self._arrays = lru_cache(KEPT_ARRAYS)(self._read)

    def __call__(self, task: TrainTask) -> ClientUpdate:
        """Train one round from the task's parameters."""
        examples = data_of(self._datasets, task.client_id)
        x, labels, values = self._arrays(task.client_id, examples)
        delta = np.empty_like(task.parameters)
        is_first = True
        loss, steps, visits = 0.0, 0, 0
        with one_blas_thread():
            draw = randomness.passing_generator(self._seed, BATCHES, task.client_id, task.round)
            for some in _in_stretches(passes(task, examples, self._training, draw)):
                known, of_stretch = dense.train_passes(
                    self._rooms.room_for(max(max(one.sizes) for one in some)),
                    task.parameters,
                    delta,
                    is_first,
                    self._layers,
                    x,
                    labels,
                    values,
                    *_visits(some),
                    self._training.momentum,
                    task.proximal_mu,
                )
                is_first = False
                loss += of_stretch
                steps += sum(len(one.sizes) for one in some)
                visits += sum(len(one.places) for one in some)
                if not known:
                    raise TrainingError(
                        f"labels must be from 0 to {self._layers[-1, dense.OUTPUTS] - 1}, "
                        f"the classes of the model; given {labels.min()} to {labels.max()}"
                    )
        return ClientUpdate(
            client_id=task.client_id,
            version=task.version,
            delta=delta,
            num_examples=len(examples),
            epochs=task.epochs,
            round=task.round,
            steps=steps,
            figures={"loss": loss / visits},
        )

    def load(self, parameters: Vector) -> None:
        """Leave the module with these parameters."""
        self._flat.load(parameters)

    def _read(
        self, client_id: str, examples: TensorExamples
    ) -> tuple[dense.Matrix, randomness.Places, dense.Matrix]:
        """A client's inputs, classes and values; either classes or values are empty."""
        return self._inputs(client_id, examples), *self._targets(client_id, examples)

    def _inputs(self, client_id: str, examples: TensorExamples) -> dense.Matrix:
        x = examples.x.numpy()
        if self._chain.flattens:
            x = x.reshape(len(x), -1)
        width = int(self._layers[0, dense.INPUTS])
        if x.dtype != np.float32 or x.shape != (len(x), width):
            raise SettingError(
                f"inputs must be float32 of shape (examples, {width}) for kernel 'compiled'; "
                f"client {client_id!r} has {x.dtype} of shape {x.shape}"
            )
        return np.ascontiguousarray(x)

    def _targets(
        self, client_id: str, examples: TensorExamples
    ) -> tuple[randomness.Places, dense.Matrix]:
        y = examples.y.numpy()
        if not self._squared_error:
            if y.dtype != np.int64 or y.ndim != 1:
                raise SettingError(
                    "targets must be one int64 class per example for kernel 'compiled'; "
                    f"client {client_id!r} has {y.dtype} of shape {y.shape}"
                )
            return y, NO_VALUES
        classes = int(self._layers[-1, dense.OUTPUTS])
        if y.dtype != np.float32 or y.shape != (len(y), classes):
            raise SettingError(
                f"targets must be float32 of shape (examples, {classes}) for kernel 'compiled' "
                f"with a squared error; client {client_id!r} has {y.dtype} of shape {y.shape}"
            )
        return NO_LABELS, np.ascontiguousarray(y)


def _in_stretches(all_passes: Iterator[Pass]) -> Iterator[list[Pass]]:
    """Gather passes until they visit many examples: short passes are carried out together."""
    some: list[Pass] = []
    visits = 0
    for one in all_passes:
        some.append(one)
        visits += len(one.places)
        if visits > VISITS_AT_ONCE:
            yield some
            some, visits = [], 0
    if some:
        yield some


def _visits(some: list[Pass]) -> tuple[randomness.Places, randomness.Places, Vector]:
    """The places visited, the sizes of the mini-batches and their rates, one pass after another."""
    sizes, rates = list[int](), list[float]()
    for one in some:
        sizes += one.sizes
        rates += one.rates
    places = some[0].places if len(some) == 1 else np.concatenate([one.places for one in some])
    return places, np.array(sizes), np.array(rates, dtype=np.float32)


def _is_squared_error(loss: Loss) -> bool:
    if loss is nn.functional.cross_entropy:
        return False
    if loss is nn.functional.mse_loss:
        return True
    raise SettingError(
        "loss must be torch.nn.functional.cross_entropy or mse_loss for kernel 'compiled'; "
        f"given {getattr(loss, '__name__', loss)!r}"
    )


def _table(chain: list[Layer], flat: FlatModule) -> npt.NDArray[np.int64]:
    """The layers as rows of numbers, with the places of their parameters in the flat vector."""
    places, begin = {}, 0
    for parameter in flat.trainable:
        places[id(parameter)] = begin
        begin += parameter.numel()
    return np.array(
        [
            (
                linear.in_features,
                linear.out_features,
                places[id(linear.weight)],
                -1 if linear.bias is None else places[id(linear.bias)],
                activation,
            )
            for linear, activation in chain
        ],
        dtype=np.int64,
    )
