"""What runs at the server: it sees models, and no patients but those of its own test data."""

import json
from pathlib import Path

import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

import asyncfeded
from asyncfeded import Progress, StopAfter, rules
from asyncfeded.runtime.events import Evaluated, Received
from hospitals import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some seconds, or go on with the run that was saved in the same folder."""
    settings = context.run_config
    folder = Path(str(settings["folder"]))
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)

    with (folder / "watch.jsonl").open("a", buffering=1) as lines:

        def watch(event, _):  # a callback: told of everything that happens
            if isinstance(event, Received):
                receipt = event.receipt
                told = {"client": receipt.client_id, "version": receipt.version}
            elif isinstance(event, Evaluated):
                told = dict(event.metrics)
            else:
                return
            lines.write(json.dumps({"seconds": event.seconds, **told}) + "\n")

        asyncfeded.flower.serve(
            grid,
            task.make_model(),
            rule=rules.REGISTRY[str(settings["rule"])](),
            seconds=float(settings["seconds"]),
            test=task.patients_of_a_study(),
            evaluate_every=3,
            folder=folder,
            callbacks=[Progress(), StopAfter(updates=int(settings["updates"])), watch],
        )
