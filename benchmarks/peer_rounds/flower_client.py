"""A Flower client. Ray's actors import it by name, so that it is not sent with every message."""

from functools import cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn

from peer_rounds.workload import EXAMPLES, client_data, make_module, train_round

app = ClientApp()


@cache
def module_of(workload: str) -> nn.Module:
    """The process's own model, made once: a client loads other weights into it."""
    return make_module(workload)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Load the global weights, train one round, send the new ones."""
    torch.set_num_threads(1)
    workload = str(message.content.config_records["config"]["workload"])
    module = module_of(workload)
    module.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    train_round(module, *client_data(workload, int(context.node_config["partition-id"])))
    content = RecordDict(
        {
            "arrays": ArrayRecord(module.state_dict()),
            "metrics": MetricRecord({"num-examples": EXAMPLES}),
        }
    )
    return Message(content=content, reply_to=message)
