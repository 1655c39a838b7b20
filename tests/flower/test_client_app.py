"""Our ClientApp: the training of every other world, in Flower's messages."""

from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from torch import nn

import asyncfeded
from asyncfeded import LocalTraining, TrainTask
from asyncfeded.client_data import examples_of_clients
from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.messages import Messages
from asyncfeded.flower.model import layout_of
from asyncfeded.flower.replies import read_evaluated, read_name, read_trained
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.recipe import TrainerRecipe
from asyncfeded.learning.reproducible import one_blas_thread
from fake_grid import config_of


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def data(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(number)
    x = torch.randn(50, 4, generator=draw)
    return x, x[:, :3].argmax(1)


def context(**node_config: Any) -> Context:
    return Context(1, 77, node_config, RecordDict(), {})


def app(**options: Any) -> Any:
    return asyncfeded.flower.client_app(
        make_model, lambda context: data(int(context.node_config["partition-id"])), **options
    )


def sent(kind: str, record: RecordDict) -> Message:
    message = Message(record, 77, kind)
    message.metadata.__dict__["_message_id"] = "sent"
    return message


def test_a_task_says_whose_it_is() -> None:
    message = sent("train", Messages().train(TASK, CODEC))
    assert config_of(message)["client"] == "client-3"


def initial() -> Vector:
    vector: Vector = FlatModule(make_model()).collect().copy()
    return vector


CODEC = Codec(layout_of(make_model()))
TASK = TrainTask("client-3", 5, initial(), 2, round=4)


@pytest.mark.parametrize("kernel_of", ["torch", "compiled"])
def test_a_round_is_that_of_the_trainer_to_the_bit(kernel_of: Any) -> None:
    training = LocalTraining(batch_size=8, kernel=kernel_of)
    make = make_model if kernel_of == "torch" else lambda: nn.Linear(4, 3)
    codec = Codec(layout_of(make()))
    start = FlatModule(make()).collect().copy()
    task = TASK._replace(parameters=start)
    client = asyncfeded.flower.client_app(make, lambda context: data(3), training=training, seed=9)
    reply = client(sent("train", Messages().train(task, codec)), context(**{"partition-id": 3}))
    update, unfit, seconds = read_trained(reply, task, codec)
    examples, _ = examples_of_clients({"client-3": data(3)}, None, 9)
    with one_blas_thread():
        model = make()
        model.load_state_dict(codec.record(start).to_torch_state_dict())
        expected = TrainerRecipe(model, examples, training, nn.functional.cross_entropy, 9)()(task)
    assert unfit is None
    assert seconds is not None
    assert seconds > 0
    # Floats may differ by one rounding: what is sent is the model, not the difference.
    assert np.abs(update.delta - expected.delta).max() < 1e-6
    for name in ("client_id", "version", "num_examples", "epochs", "round", "steps"):
        assert getattr(update, name) == getattr(expected, name)
    assert update.figures == expected.figures


def test_an_evaluation_is_of_data_that_training_does_not_see() -> None:
    client = app(seed=9)
    record = RecordDict({"arrays": CODEC.record(initial()), "config": ConfigRecord({})})
    reply = client(sent("evaluate", record), context(**{"partition-id": 3}))
    _, held_out = examples_of_clients({"client-3": data(3)}, None, 9)
    expected = Evaluator(make_model(), held_out)(initial())
    assert read_evaluated(reply) == (5.0, expected)


def test_an_evaluation_on_test_data_of_its_own() -> None:
    client = app(test_of=lambda context: data(99))
    record = RecordDict({"arrays": CODEC.record(initial()), "config": ConfigRecord({})})
    weight, metrics = read_evaluated(
        client(sent("evaluate", record), context(**{"partition-id": 3}))
    ) or (0, {})
    assert weight == 50
    assert set(metrics) == {"accuracy", "loss"}


@pytest.mark.parametrize(
    ("node_config", "options", "name"),
    [
        ({"partition-id": 3}, {}, "client-3"),
        ({}, {}, None),
        (
            {"ward": "b"},
            {"name_of": lambda context: "ward " + context.node_config["ward"]},
            "ward b",
        ),
    ],
)
def test_a_client_says_who_it_is(node_config: Any, options: Any, name: str | None) -> None:
    reply = app(**options)(sent("query.client_name", RecordDict()), context(**node_config))
    assert read_name(reply) == name


def test_k_is_read_under_the_name_that_the_server_gives_it() -> None:
    record = Messages(epochs_key="epochs").train(TASK, CODEC)
    reply = app(epochs_key="epochs")(sent("train", record), context(**{"partition-id": 3}))
    # 45 examples in batches of 32 are two steps a pass; two passes.
    assert reply.content.metric_records["metrics"]["local-steps"] == 4


def test_flowers_own_fedavg_trains_it_too() -> None:
    arrays = ArrayRecord(make_model().state_dict())
    record = RecordDict({"arrays": arrays, "config": ConfigRecord({"server-round": 1})})
    reply = app()(sent("train", record), context(**{"partition-id": 3}))
    assert list(reply.content.array_records["arrays"]) == list(arrays)
    assert reply.content.metric_records["metrics"]["num-examples"] == 45


def test_another_model_than_the_servers_is_named() -> None:
    record = RecordDict(
        {"arrays": ArrayRecord(nn.Linear(3, 3).state_dict()), "config": ConfigRecord()}
    )
    with pytest.raises(asyncfeded.AsyncFedEDError, match="arrays must be those of the model"):
        app()(sent("train", record), context(**{"partition-id": 3}))
