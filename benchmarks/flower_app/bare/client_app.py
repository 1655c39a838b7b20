"""A client that sends back what it was sent; it loads torch if it is asked to."""

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    if context.run_config["import-torch"]:
        import torch  # noqa: F401
    metrics = MetricRecord({"num-examples": 100})
    content = RecordDict({"arrays": message.content["arrays"], "metrics": metrics})
    return Message(content, reply_to=message)
