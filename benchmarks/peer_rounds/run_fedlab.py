"""FedLab's standalone simulation: a serial trainer, the FedAvg handler and its pipeline."""

import logging
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from peer_rounds.protocol import (
    Rounds,
    choose_threads,
    claim_stdout,
    parser,
    serve,
    whole_federated_rounds,
)
from peer_rounds.workload import (
    BATCH,
    CLIENTS,
    LEARNING_RATE,
    MOMENTUM,
    client_data,
    make_module,
    shuffled_batches,
)


class PreloadedClients:
    """A FedLab data set whose mini-batches are gathered from memory, without a DataLoader."""

    def __init__(self, workload: str) -> None:
        self._workload = workload

    def get_dataloader(self, client: int, batch_size: int) -> Iterable[tuple[Tensor, Tensor]]:
        assert batch_size == BATCH
        return shuffled_batches(*client_data(self._workload, client))


def import_without_torchvision() -> None:
    """Let FedLab's modules on image files, which are not used here, be imported."""
    torchvision = ModuleType("torchvision")
    torchvision.transforms = ModuleType("torchvision.transforms")  # type: ignore[attr-defined]
    sys.modules["torchvision"] = torchvision


def fedlab_rounds(workload: str) -> Rounds:
    import_without_torchvision()
    from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
    from fedlab.contrib.algorithm.basic_server import SyncServerHandler
    from fedlab.core.standalone import StandalonePipeline

    logging.getLogger().setLevel(logging.WARNING)

    class MomentumTrainer(SGDSerialClientTrainer):  # type: ignore[misc]
        """FedLab's trainer is for SGD without momentum; this one starts it anew each round."""

        def train(self, model_parameters: Tensor, train_loader: Any) -> Any:
            self.optimizer = torch.optim.SGD(self._model.parameters(), self.lr, momentum=MOMENTUM)
            return super().train(model_parameters, train_loader)

    class SilentPipeline(StandalonePipeline):  # type: ignore[misc]
        def evaluate(self) -> None:
            """Evaluation is no part of the work."""

    module = make_module(workload)
    trainer = MomentumTrainer(module, CLIENTS)
    trainer.setup_dataset(PreloadedClients(workload))
    trainer.setup_optim(epochs=1, batch_size=BATCH, lr=LEARNING_RATE)
    handler = SyncServerHandler(module, global_round=0, sample_ratio=1.0)
    pipeline = SilentPipeline(handler, trainer)

    def rounds(count: int) -> int:
        federated = whole_federated_rounds(count)
        handler.global_round = handler.round + federated
        pipeline.main()
        return federated * CLIENTS

    return rounds


def main() -> None:
    arguments = parser().parse_args()
    answers = claim_stdout()
    rounds = fedlab_rounds(arguments.workload)
    serve(answers, rounds, note=choose_threads(rounds))


if __name__ == "__main__":
    main()
