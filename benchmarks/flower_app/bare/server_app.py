"""A server that answers every update at once with the next message, and does nothing else."""

import json
import time
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()
POLL_SECONDS = 0.1


@app.main()
def main(grid: Grid, context: Context) -> None:
    settings = context.run_config
    nodes: list[int] = []
    while len(nodes) < int(settings["nodes"]):
        time.sleep(POLL_SECONDS)
        nodes = list(grid.get_node_ids())
    arrays = ArrayRecord([np.zeros(int(settings["parameters"]), np.float32)])

    def send(node: int) -> str:
        content = RecordDict({"arrays": arrays, "config": ConfigRecord({"lr": 0.1})})
        (number,) = grid.push_messages([Message(content, node, MessageType.TRAIN)])
        return number

    at_work = {send(node): node for node in nodes}
    begins = time.monotonic()
    arrivals: list[tuple[int, float]] = []
    while len(arrivals) < int(settings["updates"]):
        for reply in grid.pull_messages(list(at_work)):
            node = at_work.pop(reply.metadata.reply_to_message_id)
            reply.content["arrays"].to_numpy_ndarrays()
            arrivals.append((node, time.monotonic() - begins))
            at_work[send(node)] = node
        time.sleep(POLL_SECONDS)
    Path(str(settings["out"])).write_text(json.dumps(arrivals))
