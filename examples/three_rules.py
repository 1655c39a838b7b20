"""Compare three rules over three seeds: a table, a picture, CSV and LaTeX."""

import torch
from torch import nn

from asyncfeded import LocalTraining, Virtual, compare, rules

draw = torch.Generator().manual_seed(0)
inputs = [torch.randn(300, 10, generator=draw) + client / 5 for client in range(8)]
datasets = [(x, x[:, :4].argmax(dim=1)) for x in inputs]

table = compare(
    lambda: nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4)),
    datasets,
    rules={
        "delay-adaptive": rules.delay_adaptive(),
        "fedbuff": rules.fedbuff(buffer_size=4),
        "fedavg": rules.fedavg(),
    },
    seeds=3,
    target=0.9,
    seconds=20,
    evaluate_every=1.0,
    training=LocalTraining(learning_rate=0.005, kernel="compiled"),
    world=Virtual(suspension=0.1, workers=2),  # a tenth of all rounds is lost
)
for row in table.table():  # print(table) shows more columns
    accuracy = f"{row.best.mean:.2f} ± {row.best.sd:.2f}"
    print(f"{row.rule:14}  accuracy {accuracy}  0.9 after {row.target_seconds.mean:4.1f} s")
table.plot("rules.png", "Three rules, three seeds")
table.to_csv("rules.csv")
table.to_latex("rules.tex")

first = table.results["fedbuff"][0]  # the result of a single run, by rule and seed
print(f"fedbuff with seed 0: {first.updates} updates, {first.lost_rounds['suspended']} rounds lost")
