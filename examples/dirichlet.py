"""Deal a labelled data set out to 50 clients by Dirichlet(0.3), of which ten work at once."""

import numpy as np
import torch

from asyncfeded import LocalTraining, Virtual, federate, partition, rules

CLASSES, CLIENTS = 5, 50

draw = np.random.default_rng(0)
labels = draw.integers(CLASSES, size=5000)
centres = draw.normal(scale=0.6, size=(CLASSES, 20))
inputs = (centres[labels] + draw.normal(size=(len(labels), 20))).astype(np.float32)

train = np.arange(4500)  # the rest is for testing
parts = partition.dirichlet(labels[train], clients=CLIENTS, alpha=0.3, seed=0)
for client, places in list(parts.items())[:5]:
    counts = np.bincount(labels[places], minlength=CLASSES)
    print(f"{client}: {len(places):3} examples, by class {counts}")

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, CLASSES))
result = federate(
    model,
    {client: (inputs[places], labels[places]) for client, places in parts.items()},
    test=(inputs[4500:], labels[4500:]),
    rule=rules.delay_adaptive(),
    world=Virtual(at_work=10, workers=2),
    training=LocalTraining(batch_size=16, kernel="compiled"),
    seconds=10,
    evaluate_every=1,
)
print()
for point in result.curve:
    print(f"{point.seconds:4.1f} s  accuracy {point.accuracy:.2f}")
heard = sum(client.updates > 0 for client in result.clients.values())
print(f"{result.updates} updates by {heard} of {CLIENTS} clients")
