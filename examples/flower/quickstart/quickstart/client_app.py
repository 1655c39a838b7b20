"""The client, as in Flower's quickstart: it knows Flower and PyTorch, and nothing else."""

import time

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from quickstart import task

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model that was sent on this site's own data."""
    net = task.Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loader = _data(context)
    config = message.content["config"]
    epochs = int(config.get("local-epochs", context.run_config["local-epochs"]))
    learning_rate = float(config.get("lr", context.run_config["learning-rate"]))
    loss = task.train(net, loader, epochs, learning_rate)
    time.sleep(float(context.node_config.get("pause-seconds", 0)))  # some sites are slow
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(loader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Test the model that was sent on this site's own data."""
    net = task.Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loader = _data(context)
    loss, accuracy = task.test(net, loader)
    figures = {"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(loader.dataset)}
    content = RecordDict({"metrics": MetricRecord(figures)})
    return Message(content=content, reply_to=message)


def _data(context: Context) -> task.DataLoader:
    node = context.node_config
    batch_size = int(context.run_config["batch-size"])
    return task.load_data(int(node["partition-id"]), int(node["num-partitions"]), batch_size)
