"""FLGo's simulator with its FedAsync or FedBuff, on its clock of whole units of time.

Settings that its documentation has, in favour of speed: no evaluation, no log on the console, no
progress bar, one torch thread unless another number is faster.

Changed to make it run on this work:
- A task is a folder that names a benchmark; ours is `flgo_task`, whose calculator gathers
  mini-batches from memory, as for the other tools.
- `Simulator.initialize` sets how long each client's round takes. FLGo sends a client its next task
  one unit after its update arrived, so a round is told one unit less.
- The proximal weight of its FedAsync is 0; the term is computed all the same.
- `package_handler` also counts the updates that arrive, and `run` ends after a number of these by
  `register_exit_condition`; it is called again to go on.
- With a constant in place of training, `Client.train` adds it.

All that arrives in one unit is averaged into one version, and a client whose update lies in
FedBuff's buffer rests until the buffer is emptied.
"""

import atexit
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import flgo
import torch
from flgo.algorithm import fedasync, fedbuff
from flgo.experiment.logger import BasicLogger
from flgo.simulator.base import BasicSimulator
from flgo.utils.fmodule import FModule
from torch import Tensor, nn

from peer_rounds.flgo_task import core
from peer_rounds.simulated import Arrived, Simulation, Work

FLAGS = {"constant": "constant", "polynomial": "poly", "hinge": "hinge"}


def model_of(work: Work) -> Any:
    """The server's model, as a class: FLGo's arithmetic makes a new instance for every result."""

    class Model(FModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = work.make_module()

        def forward(self, inputs: Tensor) -> Tensor:
            outputs: Tensor = self.module(inputs)
            return outputs

        @classmethod
        def init_global_module(cls, party: Any) -> None:
            if "Server" in type(party).__name__:
                party.model = cls()

    return Model


def algorithm_of(work: Work, arrived: Callable[[Any, list[int]], None]) -> Any:
    """FLGo's algorithm; its classes are made anew because FLGo wraps their methods in place."""
    of_flgo = fedbuff if work.rule == "fedbuff" else fedasync

    class Server(of_flgo.Server):  # type: ignore[misc,name-defined]
        def package_handler(self, received_packages: dict[str, Any]) -> bool:
            if received_packages["__cid"]:
                arrived(self, received_packages["__cid"])
            changed: bool = super().package_handler(received_packages)
            return changed

    class Client(of_flgo.Client):  # type: ignore[misc,name-defined]
        def train(self, model: nn.Module) -> None:
            if work.constant is None:
                super().train(model)
                return
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(work.constant)

    return type("Algorithm", (), {"Server": Server, "Client": Client})


def simulator_of(work: Work) -> Any:
    class Simulator(BasicSimulator):  # type: ignore[misc]
        def __init__(self, objects: list[Any], *_: Any, **__: Any) -> None:
            super().__init__(objects)

        def initialize(self, *_: Any, **__: Any) -> None:
            units = [work.units_of(client) - 1 for client in self.all_clients]
            self.set_variable(self.all_clients, "latency", units)

    return Simulator


class Silent(BasicLogger):  # type: ignore[misc]
    """Writes no file: a run is asked to go on many times."""

    def save_output_as_json(self, filepath: str | None = None) -> None:
        pass


def parameters_of_rule(work: Work) -> list[object]:
    """FLGo's `algo_para`, by place."""
    if work.rule == "fedbuff":
        return [work.buffer_size / work.clients, 1.0]
    flag = FLAGS[work.rule.removeprefix("fedasync-")]
    return [work.alpha, 0.0, flag, work.a, work.b, work.a]


class Run:
    """A server that is asked to go on now and then."""

    def __init__(self, work: Work) -> None:
        self._count = self._wanted = 0
        core.work_in.append(work)
        folder = TemporaryDirectory(prefix="flgo-")
        atexit.register(folder.cleanup)
        task = Path(folder.name)
        (task / "info").write_text(json.dumps({"benchmark": core.__package__}))
        everybody = work.at_work == work.clients
        self._server = flgo.init(
            str(task),
            algorithm_of(work, self._arrived),
            {
                "sample": "full_available" if everybody else "uniform_available",
                "aggregate": "uniform",
                "proportion": work.at_work / work.clients,
                "algo_para": parameters_of_rule(work),
                "num_steps": work.steps,
                "batch_size": work.batch_size,
                "optimizer": "SGD",
                "learning_rate": work.learning_rate,
                "momentum": work.momentum,
                "train_holdout": 0.0,
                "eval_interval": -1,
                "no_log_console": True,
                "no_tqdm": True,
                "log_level": "ERROR",
            },
            model=model_of(work),
            Logger=Silent,
            Simulator=simulator_of(work),
        )
        if not everybody:  # a share of the clients may round to one less than is meant
            self._server.clients_per_round = work.at_work
        self._server.register_exit_condition(lambda _: self._count >= self._wanted)

    def _arrived(self, server: Any, clients: list[int]) -> None:
        self._count += len(clients)
        self._last = Arrived(server.gv.clock.current_time, tuple(clients))

    def updates(self, count: int) -> int:
        before = self._count
        self._wanted = before + count
        self._server.run()
        return self._count - before

    def next_arrival(self) -> Arrived:
        self.updates(1)
        return self._last

    def parameters(self) -> Tensor:
        return torch.cat([value.detach().reshape(-1) for value in self._server.model.parameters()])


def simulation(work: Work) -> Simulation:
    return Run(work)
