"""Which reading of Eq. 6 to 8 gives the K of the authors' own runs?

    python paper/readings/replay.py ROUNDS.csv.gz --task femnist --seconds 22 [--out k.csv]

The file has every round of the authors' clients (task, rule, suspension, run, client, round,
seconds, lost; of a lost round `seconds` is its hang). The length of a round tells its K, and the
hangs are known (`simulation/authors_draws.py`). So every client is made to train as many epochs
as the authors' client did, and to arrive when it arrived; the model then goes the way that theirs
went, whatever steered K. At every arrival we note the staleness γ by Eq. 6. Each reading then
steers a K of its own by these γ. The table says how far that is from the authors' K: the median
over the client's rounds of the absolute difference.
"""

import argparse
import csv
import gzip
import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import floor
from pathlib import Path
from random import Random
from statistics import median

import numpy as np

from asyncfeded import TrainTask
from asyncfeded.experiment import (
    as_tensors,
    find_task,
    initial_module,
    load_data,
    resolve,
    run_settings,
)
from asyncfeded.learning import CompiledTrainer, Evaluator, TorchTrainer
from asyncfeded.simulation import FIRST_SEED, PAPER_MACHINES

CLIENTS = 10
TRANSFER_SECONDS = {"synthetic-1-1": 0.013, "femnist": 0.288, "shakespeare": 0.19}
"""Times the coefficient of a round: the slope of the authors' round times."""
PRINTED = {"synthetic-1-1": (3.0, 1.0), "femnist": (3.0, 0.05), "shakespeare": (3.0, 1.0)}
"""γ̄ and κ of the paper."""
SEEN = {"synthetic-1-1": (5.0, 0.1), "femnist": (3.0, 0.05), "shakespeare": (3.0, 1.0)}
"""γ̄ and κ by which K rises after a round that nobody else's update fell into (γ = 0)."""
POWERS = (1.0, 1.5, 2.0, 2.5)


@dataclass
class Round:
    """One round of an authors' client that arrived: when, with which K, and the next K."""

    client: int
    number: int
    begins: float
    arrives: float
    epochs: float
    next_epochs: float
    gamma: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", type=Path)
    parser.add_argument("--task", default="synthetic-1-1", choices=TRANSFER_SECONDS)
    parser.add_argument("--suspension", type=float, default=0.0)
    parser.add_argument("--run", default="0")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--power", type=float, default=1.0, help="of γ in the server's step")
    parser.add_argument("--widths", type=int, nargs=2, help="of the model")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = read(given.rounds, given.task, given.suspension, given.run)
    rounds = [
        one
        for client in range(CLIENTS)
        for one in timeline(given.task, given.suspension, client, rows)
        if one.arrives <= given.seconds
    ]
    accuracy = follow(given.task, rounds, given.power, given.widths)
    print(f"{len(rounds)} updates in {given.seconds:g} s; accuracy {accuracy:.1%}")
    table = [row for client in range(CLIENTS) if (row := errors(given.task, client, rounds))]
    for row in table:
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    if given.out:
        with given.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]))
            writer.writeheader()
            writer.writerows(table)


Rows = dict[tuple[str, int], list[tuple[float, bool]]]
"""(seconds, lost) of every round, by rule and client."""


def read(path: Path, task: str, suspension: float, run: str) -> Rows:
    """The rounds of one run of AsyncFedED, and of FedAsync for the time of ten epochs."""
    rows: Rows = defaultdict(list)
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            if (row["task"], float(row["suspension"]), row["run"]) == (task, suspension, run):
                key = row["rule"], int(row["client"])
                rows[key].append((float(row["seconds"]), row["lost"] == "1"))
    return rows


def timeline(task: str, suspension: float, client: int, rows: Rows) -> list[Round]:
    """When a client's updates arrived, and what K its rounds had."""
    machine = PAPER_MACHINES[find_task(task).paper_devices]
    usual = lengths(task, suspension, client, rows["fedasync-constant", client])
    epoch = median(seconds for seconds, _ in usual[1:]) / 10
    found: list[Round] = []
    now, waiting = 0.0, [10.0]
    measured = lengths(task, suspension, client, rows["asyncfeded", client])
    for number, (seconds, lost) in enumerate(rows["asyncfeded", client]):
        net, coefficient = measured[number]
        whole = net + TRANSFER_SECONDS[task] * coefficient
        if number:
            waiting.append(net / epoch)
        if not lost:
            k = 10.0 if not found else median(waiting)
            if found:
                found[-1].next_epochs = k
            found.append(Round(client, number, now, now + whole, k, k))
            waiting = []
        now += whole + (seconds if lost else 0.0) + machine.gap_seconds
    return found


def lengths(
    task: str, suspension: float, client: int, rows: list[tuple[float, bool]]
) -> list[tuple[float, float]]:
    """A round's own length without its transfer, and its transfer's coefficient."""
    draw = Random(FIRST_SEED + client)  # noqa: S311
    found = []
    for seconds, lost in rows:
        coefficient = 0.5 + draw.random()
        drawn = draw.random() < suspension
        assert drawn == lost
        whole = seconds / (3 * draw.random()) if lost else seconds
        found.append((whole - TRANSFER_SECONDS[task] * coefficient, coefficient))
    return found


def follow(
    task_name: str, rounds: list[Round], power: float = 1.0, widths: list[int] | None = None
) -> float:
    """Train what the authors' clients trained, note γ at every arrival; return the accuracy."""
    task, settings = find_task(task_name), run_settings({"task": task_name})
    data = load_data(settings)
    names = list(data.train)
    sizes = task.widths if widths is None else tuple(widths)
    modules = [initial_module(task, sizes, settings.seed) for _ in range(2)]
    compiled = resolve(settings).training.kernel == "compiled"
    train = (CompiledTrainer if compiled else TorchTrainer)(
        modules[0], {name: as_tensors(data.train[name]) for name in names}, task.training
    )
    measure = Evaluator(modules[1], {name: as_tensors(data.test[name]) for name in names})
    chosen = task.rule_settings["asyncfeded"]
    ties = count()
    queue = [(one.begins, 1, next(ties), one) for one in rounds]
    queue += [(one.arrives, 0, next(ties), one) for one in rounds]
    heapq.heapify(queue)
    model, bases = train.initial.copy(), {}
    while queue:
        _, begins, _, one = heapq.heappop(queue)
        if begins:
            bases[one.client] = model
            continue
        base = bases.pop(one.client)
        epochs = max(1, round(one.epochs))
        delta = train(TrainTask(names[one.client], 1, base, epochs, one.number)).delta
        apart = np.linalg.norm((model - base).astype(np.float64))
        one.gamma = float(apart / np.linalg.norm(delta.astype(np.float64)))
        rate = chosen["lam"] / (one.gamma**power + chosen["eps"])
        model = model + np.float32(rate) * delta
    return measure(model)["accuracy"]


def errors(task: str, client: int, rounds: list[Round]) -> dict[str, object]:
    """How far each reading's K is from the authors', over the rounds of one client."""
    own = sorted((r for r in rounds if r.client == client), key=lambda r: r.number)
    if not own:
        return {}
    readings = {"printed": steered(own, *PRINTED[task], 1.0, floor)}
    for power in POWERS:
        readings[f"carry_power_{power:g}"] = steered(own, *SEEN[task], power, float)
    known = [r.next_epochs for r in own]
    return {
        "client": client,
        "rounds": len(own),
        "median_gamma": round(median(r.gamma for r in own), 2),
        "authors_median_k": round(median(known), 1),
        **{name: round(apart(ks, known), 1) for name, ks in readings.items()},
    }


def steered(
    own: list[Round], target: float, step: float, power: float, rounded: Callable[[float], float]
) -> list[float]:
    """K after every round by one reading of Eq. 8."""
    k, found = 10.0, []
    for one in own:
        k = max(1.0, k + rounded((target - one.gamma**power) * step))
        found.append(k)
    return found


def apart(some: list[float], others: list[float]) -> float:
    return median(abs(a - b) for a, b in zip(some, others, strict=True))


if __name__ == "__main__":
    main()
