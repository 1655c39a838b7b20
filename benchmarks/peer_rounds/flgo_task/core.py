"""How FLGo gets data, mini-batches and the loss of the work that `work_in` holds."""

from collections.abc import Iterator
from typing import Any

import torch
from flgo.benchmark.base import BasicTaskCalculator, BasicTaskPipe
from torch import Tensor
from torch.utils.data import TensorDataset

from peer_rounds.simulated import Work

work_in: list[Work] = []
"""FLGo makes pipe and calculator itself, from the name of this package: here they find the work."""


class TaskPipe(BasicTaskPipe):  # type: ignore[misc]
    """Gives the server no data, and every client its own to train on."""

    def __init__(self, task_path: str) -> None:
        super().__init__(task_path)
        self.feddata = {"client_names": [str(index) for index in range(work_in[-1].clients)]}

    def load_data(self, running_time_option: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        data_of = work_in[-1].data_of
        return {
            name: {"train": TensorDataset(*data_of(int(name))), "val": None}
            for name in self.feddata["client_names"]
        }


class TaskCalculator(BasicTaskCalculator):  # type: ignore[misc]
    """Mini-batches gathered from memory, and the work's loss."""

    def get_dataloader(
        self, dataset: TensorDataset, *_: Any, **__: Any
    ) -> Iterator[tuple[Tensor, Tensor]]:
        return work_in[-1].batches(*dataset.tensors)

    def compute_loss(self, model: torch.nn.Module, data: tuple[Tensor, Tensor]) -> dict[str, Any]:
        inputs, targets = data
        return {"loss": work_in[-1].loss(model(inputs), targets)}
