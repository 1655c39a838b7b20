"""pfl's simulated backend with FederatedAveraging on a PyTorch model.

With two processes it is pfl's own multi-process simulation: each trains half of a cohort, and they
add up their statistics. The first process starts the second and passes on what it is told.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

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
)

NEVER = 1_000_000_000


class Classifier(nn.Module):
    """The workload's model with the methods that pfl asks for."""

    def __init__(self, workload: str) -> None:
        super().__init__()
        self.module = make_module(workload)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.module(x), y)

    @torch.no_grad()
    def metrics(self, x: Tensor, y: Tensor) -> Mapping[str, object]:
        """What pfl measures in its very first iteration, which is part of warming up."""
        return {"loss": self.loss(x, y).item()}


def pfl_rounds(workload: str) -> Rounds:
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    classifier = Classifier(workload)
    model = PyTorchModel(
        classifier,
        local_optimizer_create=partial(torch.optim.SGD, momentum=MOMENTUM),
        central_optimizer=torch.optim.SGD(classifier.parameters(), lr=1.0),
    )
    clients = [PyTorchTensorDataset(client_data(workload, client)) for client in range(CLIENTS)]
    sampler = get_user_sampler("minimize_reuse", list(range(CLIENTS)))
    data = FederatedDataset(clients.__getitem__, sampler)
    backend = SimulatedBackend(training_data=data, val_data=data)
    algorithm = FederatedAveraging()
    training = NNTrainHyperParams(
        local_num_epochs=1, local_learning_rate=LEARNING_RATE, local_batch_size=BATCH
    )
    finished = 0

    def rounds(count: int) -> int:
        nonlocal finished
        federated = whole_federated_rounds(count)
        finished += federated
        settings = NNAlgorithmParams(
            central_num_iterations=finished,
            evaluation_frequency=NEVER,
            train_cohort_size=CLIENTS,
            val_cohort_size=0,
        )
        algorithm.run(
            settings,
            backend,
            model,
            training,
            NNEvalHyperParams(local_batch_size=None),
            send_metrics_to_platform=False,
        )
        return federated * CLIENTS

    return rounds


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def start_second(workload: str) -> subprocess.Popen[str]:
    """Start the other process of a pair, and tell pfl in both about it."""
    addresses = f"{free_address()},{free_address()}"
    os.environ.update(PFL_WORKER_ADDRESSES=addresses, PFL_WORKER_RANK="0")
    return subprocess.Popen(
        [sys.executable, "-m", "peer_rounds.run_pfl", "--workload", workload, "--second"],
        env={**os.environ, "PFL_WORKER_RANK": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )


def pass_on(second: subprocess.Popen[str], rounds: Rounds) -> Rounds:
    def both(count: int) -> int:
        assert second.stdin is not None
        second.stdin.write(f"{count}\n")
        return rounds(count)

    return both


def main() -> None:
    options = parser()
    options.add_argument("--processes", type=int, choices=(1, 2), default=1)
    options.add_argument("--second", action="store_true", help="be the other process of a pair")
    arguments = options.parse_args()
    if arguments.second:
        torch.set_num_threads(1)
        rounds = pfl_rounds(arguments.workload)
        for line in sys.stdin:
            rounds(int(line))
        return
    answers = claim_stdout()
    if arguments.processes == 1:
        rounds = pfl_rounds(arguments.workload)
        serve(answers, rounds, note=choose_threads(rounds))
        return
    torch.set_num_threads(1)
    with start_second(arguments.workload) as second:
        serve(answers, pass_on(second, pfl_rounds(arguments.workload)), note="1 thread each")


if __name__ == "__main__":
    main()
