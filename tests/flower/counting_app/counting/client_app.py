"""A client that adds 1 to the place in the model that stands for this task alone.

It knows Flower and NumPy only, so that its process starts quickly.
"""

import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from counting.places import place

app = ClientApp()


@app.query("client_name")
def who(message: Message, context: Context) -> Message:
    name = f"client-{context.node_config['partition-id']}"
    return Message(RecordDict({"config": ConfigRecord({"client": name})}), reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    config = message.content["config"]
    client, number = str(config["client"]), int(config["client-round"])
    weight = np.array(message.content["arrays"]["weight"].numpy())
    weight[0, place(client, number)] += 1
    time.sleep(float(context.run_config["pause-seconds"]))
    with Path(str(context.run_config["folder"]), "trained.txt").open("a") as lines:
        lines.write(f"{client} {number}\n")
    content = RecordDict(
        {
            "arrays": ArrayRecord({"weight": Array(weight)}),
            "metrics": MetricRecord({"num-examples": 1}),
        }
    )
    return Message(content, reply_to=message)
