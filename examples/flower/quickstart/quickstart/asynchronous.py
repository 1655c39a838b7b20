"""Another server for the same clients: each update counts when it arrives, and nobody waits."""

import json
from pathlib import Path

import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

import asyncfeded
from asyncfeded.runtime.events import Evaluated
from quickstart import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train until somebody ends the run, and write the accuracy on the server's data."""
    settings = context.run_config
    torch.manual_seed(0)
    curve = Path(str(settings["curve"]))

    # As long as under FedAvg: kappa=0 leaves K alone. A simulation of these four unlike sites has
    # shown that their changes overshoot with lam=5, the default, and settle with 2.
    epochs = int(settings["local-epochs"])
    rule = asyncfeded.rules.asyncfeded(lam=2.0, kappa=0.0, initial_epochs=epochs)

    def write(event, _):  # a callback: told of everything that happens
        if isinstance(event, Evaluated):
            point = {"seconds": event.seconds, "version": event.version, **event.metrics}
            with curve.open("a") as lines:
                lines.write(json.dumps(point) + "\n")

    asyncfeded.flower.serve(
        grid,
        task.Net(),
        rule=rule,
        seconds=24 * 3600,
        test=task.load_test_data().dataset,
        evaluate_every=2,
        callbacks=[write],
        messages=asyncfeded.flower.Messages(config={"lr": float(settings["learning-rate"])}),
    )
