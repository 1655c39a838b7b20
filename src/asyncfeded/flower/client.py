"""A ClientApp that trains as clients do in every other world."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from torch import nn

from asyncfeded.client_data import examples_of_clients
from asyncfeded.core.messages import TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.model import layout_of
from asyncfeded.flower.records import (
    CLIENT,
    CLIENT_ROUND,
    LOCAL_EPOCHS,
    LOCAL_STEPS,
    NUM_EXAMPLES,
    PROXIMAL_MU,
    SERVER_ROUND,
    TRAIN_SECONDS,
    WHO,
    arrays_of,
    config_of,
    name_record,
    reply_record,
)
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.evaluation import Evaluator, Metric
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.recipe import TrainerRecipe
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.trainer import Loss

PARTITION = "partition-id"
"""The entry of a SuperNode's --node-config by which its client is named."""


def client_app(
    make_model: Callable[[], nn.Module],
    dataset_of: Callable[[Context], Any],
    *,
    training: LocalTraining | None = None,
    test_of: Callable[[Context], Any] | None = None,
    loss: Loss = nn.functional.cross_entropy,
    metrics: Mapping[str, Metric] | None = None,
    name_of: Callable[[Context], str | None] | None = None,
    epochs_key: str = LOCAL_EPOCHS,
    seed: int = 0,
) -> ClientApp:
    """Make a ClientApp that trains `make_model()` on the data of its node.

        app = asyncfeded.flower.client_app(make_model, lambda context: my_dataset(
            context.node_config["partition-id"]))

    - `make_model`: makes the model, the same as the server's; the values are the server's.
    - `dataset_of`: given Flower's Context, the node's data: a torch Dataset of (input, target), or
      a pair (inputs, targets) of tensors or arrays.
    - `training`: how it trains, a `LocalTraining`; the server says for how long.
    - `test_of`: the node's test data, for evaluation. Without it, a tenth of its data is held out.
    - `metrics`: numbers to measure beside accuracy and loss, as in `federate`.
    - `name_of`: by which name the server is to know this client, whatever its node id is. Without
      it, client-N on the node with `partition-id=N`.
    - `epochs_key`: the entry of the config that holds K, if the server calls it otherwise.

    It answers the messages of Flower's own strategies, too.
    """
    train = LocalTraining() if training is None else training
    name_of = _name_of_partition if name_of is None else name_of
    data = partial(_examples, dataset_of, test_of, seed)
    app = ClientApp()

    @app.train()
    def on_train(message: Message, context: Context) -> Message:
        config = config_of(message)
        name = config.get(CLIENT) or name_of(context) or str(context.node_id)
        examples, _ = data(name, context)
        codec = Codec(layout_of(model := make_model()))
        task = _task(name, config, codec.vector(arrays_of(message)), epochs_key)
        with one_blas_thread():
            trainer = TrainerRecipe(model, {name: examples}, train, loss, seed)()
            began = time.perf_counter()
            update = trainer(task)
            seconds = time.perf_counter() - began
        figures = {
            **update.figures,
            NUM_EXAMPLES: update.num_examples,
            LOCAL_STEPS: update.steps or update.epochs,
            TRAIN_SECONDS: seconds,
        }
        trained = np.add(task.parameters, update.delta)
        return Message(reply_record(codec.record(trained), figures), reply_to=message)

    @app.evaluate()
    def on_evaluate(message: Message, context: Context) -> Message:
        name = name_of(context) or str(context.node_id)
        _, held_out = data(name, context)
        codec = Codec(layout_of(model := make_model()))
        parameters = codec.vector(arrays_of(message))
        measured = Evaluator(model, {name: held_out}, loss, metrics)(parameters)
        figures = {**measured, NUM_EXAMPLES: len(held_out)}
        return Message(reply_record(None, figures), reply_to=message)

    @app.query(WHO.partition(".")[2])
    def on_query(message: Message, context: Context) -> Message:
        return Message(name_record(name_of(context)), reply_to=message)

    return app


def _name_of_partition(context: Context) -> str | None:
    """The name of a node's client, the same as in a list of data sets elsewhere."""
    number = context.node_config.get(PARTITION)
    return None if number is None else f"client-{number}"


def _examples(
    dataset_of: Callable[[Context], Any],
    test_of: Callable[[Context], Any] | None,
    seed: int,
    name: str,
    context: Context,
) -> tuple[TensorExamples, TensorExamples]:
    """A client's examples to train on and to test with, divided as `federate` divides them."""
    test = None if test_of is None else {name: test_of(context)}
    train, held_out = examples_of_clients({name: dataset_of(context)}, test, seed)
    return train[name], held_out[name]


def _task(name: str, config: Mapping[str, Any], parameters: Vector, epochs_key: str) -> TrainTask:
    """The task in a message of our server, or of one of Flower's strategies."""
    version = int(config.get(SERVER_ROUND, 1))
    return TrainTask(
        name,
        version,
        parameters,
        int(config.get(epochs_key, 1)),
        int(config.get(CLIENT_ROUND, version)),
        float(config.get(PROXIMAL_MU, 0.0)),
    )
