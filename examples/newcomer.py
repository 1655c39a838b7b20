"""What a newcomer wants: an own module, own data, an own rule, three seeds, a table for a paper."""

import numpy as np
import torch
from torch import nn

from asyncfeded import KeepBest, StopAt, TensorBoard, compare, partition, rules
from server_momentum import momentum  # the rule in the file beside this one

CLASSES, CLIENTS = 4, 20


def make_model():
    """A module with batch normalisation, whose statistics the server averages."""
    hidden = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU())
    return nn.Sequential(hidden, nn.Linear(32, CLASSES))


def macro_f1(outputs, targets):
    """The mean over the classes of 2 · hits / (predicted + actual)."""
    guesses = outputs.argmax(dim=1)
    scores = []
    for label in range(CLASSES):
        hits = ((guesses == label) & (targets == label)).sum()
        scores.append(2 * hits / ((guesses == label).sum() + (targets == label).sum()).clamp(min=1))
    return float(torch.stack(scores).mean())


def callbacks(rule, seed):
    """Stop early, keep the best model and draw curves, for every run."""
    best = KeepBest(f"{rule}-{seed}.safetensors", "f1")
    return [StopAt("f1", 0.9), best, TensorBoard(f"tensorboard/{rule}-{seed}")]


draw = np.random.default_rng(0)
labels = draw.integers(CLASSES, size=4000)
centres = draw.normal(size=(CLASSES, 10))
inputs = (centres[labels] + draw.normal(size=(len(labels), 10))).astype(np.float32)
parts = partition.dirichlet(labels[:3000], clients=CLIENTS, alpha=0.3, seed=0)

table = compare(
    make_model,
    {client: (inputs[places], labels[places]) for client, places in parts.items()},
    rules={
        "momentum": momentum(server_lr=0.1),
        "fedbuff": rules.fedbuff(),
        "fedavg": rules.fedavg(),
    },
    seeds=3,
    test=(inputs[3000:], labels[3000:]),
    metrics={"f1": macro_f1},
    metric="f1",
    target=0.85,
    callbacks=callbacks,
    seconds=6,
    evaluate_every=0.5,
)
for row in table.table():  # print(table) shows more columns
    print(f"{row.rule:9} F1 {row.best.mean:.2f}, 0.85 after {row.target_seconds.mean:.1f} s")
table.to_latex("table.tex")
