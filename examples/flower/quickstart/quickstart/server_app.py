"""The server, as in Flower's quickstart: FedAvg in rounds that wait for every site."""

import json
import time
from pathlib import Path

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from quickstart import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds, and write the accuracy on the server's data after each."""
    torch.manual_seed(0)
    curve = Path(str(context.run_config["curve"]))
    test_data = task.load_test_data()
    begins = time.monotonic()

    def evaluate(round_number: int, arrays: ArrayRecord) -> MetricRecord:
        net = task.Net()
        net.load_state_dict(arrays.to_torch_state_dict())
        loss, accuracy = task.test(net, test_data)
        seconds = time.monotonic() - begins
        point = {"seconds": seconds, "round": round_number, "loss": loss, "accuracy": accuracy}
        with curve.open("a") as lines:
            lines.write(json.dumps(point) + "\n")
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    nodes = int(context.run_config["nodes"])
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(task.Net().state_dict()),
        train_config=ConfigRecord({"lr": float(context.run_config["learning-rate"])}),
        num_rounds=int(context.run_config["num-rounds"]),
        evaluate_fn=evaluate,
    )
