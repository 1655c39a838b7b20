"""APPFL's simulator of asynchronous training: `AsyncSimDriver` with its agents and VanillaTrainer.

Settings that its documentation has, in favour of speed: `optimize_memory` is off (with it APPFL
collects garbage many times a round, and an update took more than 0.3 s of processor time, without
it about 0.01 s); the client's log, a line per round, is raised to warnings; nothing is validated.

Changed to make it run on this work:
- Model, data and loss are given by overriding the agents' `_load_…` methods, which APPFL's
  documentation offers, because its configurations name files.
- The trainer's DataLoader is replaced by mini-batches gathered from memory, as for the other tools:
  APPFL has no setting for this, and collating examples one by one would take longer than training.
- The driver ends after a number of updates; this number is raised and `run` called again.
- piq, which judges images in reports that are not made here, is an empty module: it imports a
  torchvision that may not fit the torch at hand.
- With a constant in place of training, a trainer of our own adds it and reports as VanillaTrainer.

Everything else is APPFL's: a `ClientAgent` with a model of its own per client, OmegaConf's
configurations, a fixed `base_step_time`, no time for communication.
"""

import copy
import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from peer_rounds.simulated import Arrived, Simulation, Work


def import_without_piq() -> None:
    """Let APPFL's reports on images, which are not used here, be imported."""
    piq = ModuleType("piq")
    piq.brisque = piq.total_variation = None  # type: ignore[attr-defined]
    sys.modules["piq"] = piq


import_without_piq()

from appfl.agent import ClientAgent, ServerAgent  # noqa: E402
from appfl.algorithm.trainer import VanillaTrainer  # noqa: E402
from appfl.algorithm.trainer.base_trainer import BaseTrainer  # noqa: E402
from appfl.vsim import AsyncSimDriver, ClientProfile  # noqa: E402

BASE_STEP_SECONDS = 1.0
NO_METRIC = 0.0


class Loss(nn.Module):
    """A loss function as a module, which APPFL asks for."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self._work.loss(outputs, targets)


class Batches:
    """What VanillaTrainer asks of its loader: a pass, and how many mini-batches it has."""

    def __init__(self, work: Work, x: Tensor, y: Tensor) -> None:
        self._work, self._x, self._y = work, x, y

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self._work.batches(self._x, self._y)

    def __len__(self) -> int:
        return -(-len(self._y) // self._work.batch_size)


class ConstantTrainer(BaseTrainer):  # type: ignore[misc]
    """Adds a constant in place of training, and reports the steps that APPFL's clock needs."""

    def __init__(self, constant: float, steps: int, **given: Any) -> None:
        super().__init__(**given)
        self._constant, self._steps = constant, steps

    @torch.no_grad()
    def train(self, **_: Any) -> None:
        for parameter in self.model.parameters():
            parameter.add_(self._constant)
        self._state = copy.deepcopy(self.model.state_dict())  # as VanillaTrainer

    def get_parameters(self) -> tuple[dict[str, Tensor], dict[str, int]]:
        return self._state, {"current_local_steps": self._steps}


class Client(ClientAgent):  # type: ignore[misc]
    """An agent on this work's model and data."""

    trainer: BaseTrainer

    def __init__(self, work: Work, index: int) -> None:
        self._work, self._index = work, index
        training = {
            "trainer": "VanillaTrainer",
            "mode": "step",
            "num_local_steps": work.steps,
            "optim": "SGD",
            "optim_args": {"lr": work.learning_rate, "momentum": work.momentum},
            "train_batch_size": work.batch_size,
            "do_validation": False,
            "do_pre_validation": False,
            "optimize_memory": False,
            "logging_output_filename": "",
        }
        super().__init__(
            OmegaConf.create(
                {
                    "client_id": str(index),
                    "train_configs": training,
                    "optimize_memory": False,
                }
            )
        )

    def _create_logger(self) -> None:
        super()._create_logger()
        self.logger.logger.setLevel(logging.WARNING)

    def _load_model(self) -> None:
        self.model = self._work.make_module()

    def _load_loss(self) -> None:
        self.loss_fn = Loss(self._work)

    def _load_metric(self) -> None:
        self.metric = lambda *_: NO_METRIC

    def _load_data(self) -> None:
        self._pair = self._work.data_of(self._index)
        self.train_dataset, self.val_dataset = TensorDataset(*self._pair), None

    def _load_trainer(self) -> None:
        if self._work.constant is None:
            super()._load_trainer()
            assert isinstance(self.trainer, VanillaTrainer)
            self.trainer.train_dataloader = Batches(self._work, *self._pair)
        else:
            given = {"model": self.model, "train_configs": self.client_agent_config.train_configs}
            self.trainer = ConstantTrainer(self._work.constant, self._work.steps, **given)


class Server(ServerAgent):  # type: ignore[misc]
    """An agent on this work's model."""

    def __init__(self, work: Work) -> None:
        self._work = work
        name = "FedBuffAggregator" if work.rule == "fedbuff" else "FedAsyncAggregator"
        lag = work.rule.removeprefix("fedasync-")
        settings: dict[str, object] = {
            "alpha": work.alpha,
            "client_weights_mode": "equal",
            "optimize_memory": False,
            "staleness_fn": "polynomial" if work.rule == "fedbuff" else lag,
            "staleness_fn_kwargs": {"a": work.a, "b": work.b},
        }
        if work.rule == "fedbuff":
            settings |= {"K": work.buffer_size}
        super().__init__(
            OmegaConf.create(
                {
                    "client_configs": {"train_configs": {}, "model_configs": {}},
                    "server_configs": {
                        "num_clients": work.clients,
                        "num_global_epochs": 0,
                        "optimize_memory": False,
                        "aggregator": name,
                        "aggregator_kwargs": settings,
                        "scheduler": "AsyncScheduler",
                        "scheduler_kwargs": {"optimize_memory": False},
                    },
                }
            )
        )
        self.logger.logger.setLevel(logging.WARNING)

    def _load_model(self) -> None:
        self.model = self._work.make_module()


class Driven:
    """A driver that is asked to go on now and then."""

    def __init__(self, work: Work) -> None:
        logger = logging.getLogger("vsim")
        logger.setLevel(logging.WARNING)
        self._server = Server(work)
        self._driver = AsyncSimDriver(
            self._server,
            [Client(work, index) for index in range(work.clients)],
            {
                str(index): ClientProfile(work.units_of(index) / work.steps, bandwidth=0.0)
                for index in range(work.clients)
            },
            work.at_work,
            logger,
            base_step_time=BASE_STEP_SECONDS,
        )

    def updates(self, count: int) -> int:
        done = len(self._driver.history)
        settings = self._server.server_agent_config.server_configs
        settings.num_global_epochs = self._server.scheduler.get_num_global_epochs() + count
        self._driver.run()
        return len(self._driver.history) - done

    def next_arrival(self) -> Arrived:
        self.updates(1)
        last = self._driver.history[-1]
        return Arrived(last["vtime"], (int(last["cid"]),))

    def parameters(self) -> Tensor:
        state = self._server.get_parameters(serial_run=True)
        return torch.cat([value.reshape(-1) for value in state.values()])


def simulation(work: Work) -> Simulation:
    return Driven(work)
