"""Train your own torch module over the data of six clients, and look at the result."""

import torch
from torch import nn

from asyncfeded import federate, rules


class Classifier(nn.Module):
    """Any module will do."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 32)
        self.scores = nn.Linear(32, 3)

    def forward(self, x):
        return self.scores(torch.relu(self.hidden(x)))


def client_data(index):
    """A client has its own number of examples, and inputs around its own mean."""
    x = torch.randn(200 + 100 * index, 20) + index / 5
    return x, x[:, :3].argmax(dim=1)  # the class is the largest of the first three inputs


torch.manual_seed(0)
model = Classifier()
datasets = [client_data(index) for index in range(6)]
result = federate(model, datasets, rule=rules.fedbuff(buffer_size=3), seconds=10, seed=0)

for point in result.curve:
    print(f"{point.seconds:4.1f} s  version {point.version:3}  accuracy {point.accuracy:.2f}")
print(f"\n{result.updates} updates; 90 % of the maximum after {result.t90_seconds:.1f} s")
for name, client in result.clients.items():
    print(f"{name}: {client.examples} examples, {client.updates} updates")

with torch.no_grad():  # the module has the last version
    x, y = client_data(3)
    print(f"new data: {(model(x).argmax(dim=1) == y).float().mean():.2f} right")
