"""A client's round under any kernel: the examples that it visits, and the learning rates."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from torch import Tensor

from asyncfeded import randomness
from asyncfeded.core.messages import TrainTask
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.local_training import LocalTraining


class Pass(NamedTuple):
    """A pass over a client's examples: the visited places in order, cut into mini-batches.

    `rates` has the learning rate of every mini-batch, `sizes` its number of examples.
    """

    rates: list[float]
    places: randomness.Places
    sizes: list[int]


BATCHES = "batches"
"""The purpose of the draws that decide a round's mini-batches."""


def passes(
    task: TrainTask, examples: TensorExamples, training: LocalTraining, draw: np.random.Generator
) -> Iterator[Pass]:
    """The passes of a round; if K counts steps, the last may end early."""
    sizes = batch_sizes(len(examples), training.batch_size)
    in_steps = training.unit == "steps"
    steps_left = task.epochs if in_steps else task.epochs * len(sizes)
    epoch, step = 0, 0
    while steps_left > 0:
        places = examples.order(draw)
        if steps_left < len(sizes):
            sizes = sizes[:steps_left]
            places = places[: sum(sizes)]
        steps = range(step, step + len(sizes))
        yield Pass([training.rate(task.round, epoch, n) for n in steps], places, sizes)
        steps_left -= len(sizes)
        step += len(sizes)
        epoch += 1


def split(x: Tensor, y: Tensor, sizes: list[int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Consecutive mini-batches of these sizes."""
    start = 0
    for size in sizes:
        yield x[start : start + size], y[start : start + size]
        start += size


def batch_sizes(num_examples: int, batch_size: int) -> list[int]:
    """The sizes of a pass's mini-batches; a single last example joins the mini-batch before it.

    Batch normalisation cannot be trained on a single example.
    """
    sizes = [batch_size] * (num_examples // batch_size)
    rest = num_examples % batch_size
    if rest == 1 and sizes:
        sizes[-1] += 1
    elif rest:
        sizes.append(rest)
    return sizes
