"""What runs at a hospital: its data are read here, and never leave."""

import time

from flwr.app import Context
from torch import Tensor

import asyncfeded
from asyncfeded import LocalTraining
from hospitals import task


def own_patients(context: Context) -> tuple[Tensor, Tensor]:
    """Read this hospital's data; `context.node_config` has what its SuperNode was started with."""
    node = context.node_config
    time.sleep(float(node.get("pause-seconds", 0)))  # some hospitals have slow machines
    return task.patients_of(int(node["partition-id"]), int(node.get("patients", 400)))


training = LocalTraining(batch_size=32, learning_rate=0.02)
app = asyncfeded.flower.client_app(task.make_model, own_patients, training=training)
