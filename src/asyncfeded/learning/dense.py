"""A pass of local training over a chain of fully connected layers, compiled.

No Python runs between mini-batches, and the interpreter's lock is released. Matrix products are
BLAS calls, with a loop between two of them. Parameters live in flat float32 vectors with torch's
layout: a weight is (outputs, inputs), row by row. A mini-batch has an example per column, so that
W · inputs and Wᵀ · error are the products at which BLAS is fastest for few examples. For
error · inputsᵀ the inputs are transposed first: for wide layers that is cheaper than a product with
a transposed matrix.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg.cython_blas  # noqa: F401 - np.dot calls its BLAS in compiled code

from asyncfeded.core.kernels import compiled
from asyncfeded.core.vectors import Vector
from asyncfeded.randomness import Places

Matrix = npt.NDArray[np.float32]
Table = npt.NDArray[np.int64]

INPUTS, OUTPUTS, WEIGHT, BIAS, ACTIVATION = range(5)
"""The columns of the table of layers: widths, places in the vector (a bias at −1 is none), code."""


WORTH_TURNING = 32
"""From this many outputs on, a product gains more than transposing the inputs takes."""


class Activation(IntEnum):
    """The function that is applied to the output of a layer.

    It stands here because compiled code on disk is made anew when this file changes.
    """

    NONE = 0
    RELU = 1
    TANH = 2
    SIGMOID = 3


class Room(NamedTuple):
    """Memory for the training of one round.

    The first three are as long as the model; `outputs` has room for a mini-batch's inputs and all
    layers' outputs, `errors` for three of the widest.
    """

    model: Vector
    velocity: Vector
    gradient: Vector
    outputs: Vector
    errors: Vector


RELU, TANH, SIGMOID = map(int, (Activation.RELU, Activation.TANH, Activation.SIGMOID))


LARGEST_PRODUCT = 1e200
"""Small enough to be multiplied by any number of classes once more."""


@compiled
def train_passes(
    room: Room,
    start: Vector,
    delta: Vector,
    is_first: bool,
    layers: Table,
    x: Matrix,
    labels: Places,
    values: Matrix,
    places: Places,
    sizes: Places,
    rates: Vector,
    momentum: float,
    proximal_mu: float,
) -> tuple[bool, float]:
    """Momentum SGD over mini-batches of these sizes: v ← m·v + ∇f(x) + μ·(x − x_start).

    Cross-entropy against `labels`, or the mean squared error against `values` if these have
    columns. The first passes of a round begin at `start` without velocity, later passes go on from
    the contents of the room. Leaves the way from the start in `delta`. Returns True and the sum of
    the loss over the examples visited; stops and returns False if a label is no class.
    """
    model, velocity, gradient = room.model, room.velocity, room.gradient
    outputs, errors = room.outputs, room.errors
    if is_first:
        model[:] = start
        velocity[:] = 0
    factor, pull = np.float32(momentum), np.float32(proximal_mu)
    first = 0
    loss = 0.0
    for step in range(sizes.size):
        batch = places[first : first + sizes[step]]
        first += sizes[step]
        _forward(model, layers, x, batch, outputs)
        scores = _error(errors, layers, layers.shape[0], batch.size)
        scores[:] = _output(outputs, layers, layers.shape[0], batch.size)
        if values.shape[1] > 0:
            loss += _squared_error_gradient(scores, values, batch)
        else:
            known, of_batch = _cross_entropy_gradient(scores, labels, batch)
            if not known:
                return False, loss
            loss += of_batch
        _backward(model, layers, x, batch, outputs, scores, errors, gradient)
        rate = rates[step]
        if pull > 0:
            for index in range(model.size):
                gradient[index] += pull * (model[index] - start[index])
        for index in range(model.size):
            velocity[index] = factor * velocity[index] + gradient[index]
            model[index] -= rate * velocity[index]
    for index in range(model.size):
        delta[index] = model[index] - start[index]
    return True, loss


@compiled
def _output(outputs: Vector, layers: Table, layer: int, count: int) -> Matrix:
    """The output of the layer before `layer` for `count` examples; of layer 0, its inputs."""
    begin = 0
    for index in range(layer):
        begin += count * layers[index, INPUTS]
    width = layers[layer, INPUTS] if layer < layers.shape[0] else layers[layer - 1, OUTPUTS]
    return outputs[begin : begin + count * width].reshape(width, count)


@compiled
def _error(errors: Vector, layers: Table, layer: int, count: int) -> Matrix:
    """Room for the error of the input of `layer`, apart from that of the next layer."""
    width = layers[layer, INPUTS] if layer < layers.shape[0] else layers[layer - 1, OUTPUTS]
    begin = (layer % 2) * (errors.size // 3)
    return errors[begin : begin + count * width].reshape(width, count)


@compiled
def _turned(errors: Vector, inputs: Matrix) -> Matrix:
    """A copy with an example per row, in the last part of the room for errors."""
    width, count = inputs.shape
    begin = 2 * (errors.size // 3)
    rows = errors[begin : begin + count * width].reshape(count, width)
    for row in range(width):
        for column in range(count):
            rows[column, row] = inputs[row, column]
    return rows


@compiled
def _chosen(errors: Vector, x: Matrix, batch: Places) -> Matrix:
    """The examples of a mini-batch, a row each, in the last part of the room for errors."""
    begin = 2 * (errors.size // 3)
    rows = errors[begin : begin + batch.size * x.shape[1]].reshape(batch.size, x.shape[1])
    for row in range(batch.size):
        example = x[batch[row]]
        for column in range(example.size):
            rows[row, column] = example[column]
    return rows


@compiled
def _weight(vector: Vector, layer: Table) -> Matrix:
    size = layer[INPUTS] * layer[OUTPUTS]
    part = vector[layer[WEIGHT] : layer[WEIGHT] + size]
    return part.reshape(layer[OUTPUTS], layer[INPUTS])


@compiled
def _forward(model: Vector, layers: Table, x: Matrix, batch: Places, outputs: Vector) -> None:
    inputs = _output(outputs, layers, 0, batch.size)
    for column in range(batch.size):
        example = x[batch[column]]
        for row in range(example.size):
            inputs[row, column] = example[row]
    for index in range(layers.shape[0]):
        layer = layers[index]
        result = _output(outputs, layers, index + 1, batch.size)
        np.dot(_weight(model, layer), _output(outputs, layers, index, batch.size), result)
        if layer[BIAS] >= 0:
            bias = model[layer[BIAS] : layer[BIAS] + layer[OUTPUTS]]
            for row in range(bias.size):
                values = result[row]
                for column in range(values.size):
                    values[column] += bias[row]
        _activate(result, layer[ACTIVATION])


@compiled
def _activate(result: Matrix, activation: int) -> None:
    flat = result.reshape(result.size)
    if activation == RELU:
        for index in range(flat.size):
            # As in torch, NaN stays NaN, so that a broken model is noticed.
            flat[index] = np.float32(0) if flat[index] < 0 else flat[index]
    elif activation == TANH:
        for index in range(flat.size):
            flat[index] = math.tanh(flat[index])
    elif activation == SIGMOID:
        for index in range(flat.size):
            flat[index] = np.float32(1) / (np.float32(1) + math.exp(-flat[index]))


@compiled
def _cross_entropy_gradient(scores: Matrix, labels: Places, batch: Places) -> tuple[bool, float]:
    """Scores ← (softmax(scores) − one-hot(label)) / count.

    Returns True and the sum of the loss; False if a label is out of range.
    """
    classes, count = scores.shape
    share = np.float32(1) / np.float32(count)
    loss = 0.0
    totals = 1.0  # the product of many: one logarithm instead of a logarithm per example
    for column in range(count):
        label = labels[batch[column]]
        if label < 0 or label >= classes:
            return False, loss
        highest = scores[0, column]
        for row in range(1, classes):
            highest = max(highest, scores[row, column])
        below = highest - scores[label, column]
        total = np.float32(0)
        for row in range(classes):
            scores[row, column] = math.exp(scores[row, column] - highest)
            total += scores[row, column]
        loss += below
        totals *= float(total)
        if totals > LARGEST_PRODUCT:
            loss += math.log(totals)
            totals = 1.0
        scale = share / total
        for row in range(classes):
            scores[row, column] *= scale
        scores[label, column] -= share
    return True, loss + math.log(totals)


@compiled
def _squared_error_gradient(scores: Matrix, values: Matrix, batch: Places) -> float:
    """Scores ← 2 · (scores − values) / number of scores; returns the sum of the loss."""
    scale = np.float32(2) / np.float32(scores.size)
    squares = 0.0
    for column in range(batch.size):
        target = values[batch[column]]
        for row in range(target.size):
            apart = scores[row, column] - target[row]
            squares += np.float64(apart) * np.float64(apart)
            scores[row, column] = scale * apart
    return float(squares / scores.shape[0])


@compiled
def _backward(
    model: Vector,
    layers: Table,
    x: Matrix,
    batch: Places,
    outputs: Vector,
    error: Matrix,
    errors: Vector,
    gradient: Vector,
) -> None:
    """From the error of the scores to the gradient of every parameter, last layer first."""
    count = batch.size
    for back in range(layers.shape[0]):
        index = layers.shape[0] - 1 - back
        layer = layers[index]
        inputs = _output(outputs, layers, index, count)
        _derive(error, _output(outputs, layers, index + 1, count), layer[ACTIVATION])
        if layer[OUTPUTS] < WORTH_TURNING:
            np.dot(error, inputs.T, _weight(gradient, layer))
        elif index > 0:
            np.dot(error, _turned(errors, inputs), _weight(gradient, layer))
        else:
            np.dot(error, _chosen(errors, x, batch), _weight(gradient, layer))
        if layer[BIAS] >= 0:
            bias = gradient[layer[BIAS] : layer[BIAS] + layer[OUTPUTS]]
            for row in range(bias.size):
                values = error[row]
                total = np.float32(0)
                for column in range(count):
                    total += values[column]
                bias[row] = total
        if index > 0:
            below = _error(errors, layers, index, count)
            np.dot(_weight(model, layer).T, error, below)
            error = below


@compiled
def _derive(error: Matrix, output: Matrix, activation: int) -> None:
    """Error ← error · the activation's derivative, computed from its output."""
    flat, y = error.reshape(error.size), output.reshape(output.size)
    if activation == RELU:
        for index in range(flat.size):
            flat[index] = flat[index] if y[index] > 0 else np.float32(0)
    elif activation == TANH:
        for index in range(flat.size):
            flat[index] *= np.float32(1) - y[index] * y[index]
    elif activation == SIGMOID:
        for index in range(flat.size):
            flat[index] *= y[index] * (np.float32(1) - y[index])
