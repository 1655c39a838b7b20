"""Flower's simulation: its FedAvg strategy over 20 nodes, which two Ray actors take turns to be."""

import logging

from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from peer_rounds import flower_client
from peer_rounds.protocol import Rounds, claim_stdout, parser, serve, whole_federated_rounds
from peer_rounds.workload import CLIENTS, make_module

ACTORS = 2


def flower_rounds(workload: str, grid: Grid) -> Rounds:
    """Rounds as `FedAvg.start` makes them, without the evaluation that follows each there."""
    strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
    arrays = ArrayRecord(make_module(workload).state_dict())
    finished = 0

    def rounds(count: int) -> int:
        nonlocal arrays, finished
        federated = whole_federated_rounds(count)
        for _ in range(federated):
            finished += 1
            config = ConfigRecord({"workload": workload})
            messages = strategy.configure_train(finished, arrays, config, grid)
            replies = list(grid.send_and_receive(messages))
            failed = [reply.error.reason for reply in replies if reply.has_error()]
            if failed:
                raise RuntimeError(f"a client failed: {failed[0]}")
            aggregated, _ = strategy.aggregate_train(finished, replies)
            assert aggregated is not None
            arrays = aggregated
        return federated * CLIENTS

    return rounds


def main() -> None:
    arguments = parser().parse_args()
    answers = claim_stdout()
    logging.getLogger("flwr").setLevel(logging.WARNING)
    server = ServerApp()

    @server.main()
    def answer(grid: Grid, context: Context) -> None:  # noqa: ARG001 - Flower's signature
        serve(answers, flower_rounds(arguments.workload, grid), f"{ACTORS} actors, 1 thread each")

    run_simulation(
        server_app=server,
        client_app=flower_client.app,
        num_supernodes=CLIENTS,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": ACTORS, "include_dashboard": False},
        },
    )


if __name__ == "__main__":
    main()
