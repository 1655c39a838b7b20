"""How many updates the paper's devices make in 300 s, beside the authors' counts.

The loop, the server, the transport and the devices are those of a real run; only the training
costs nothing. So this tells whether our devices are the authors', before anything is learned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from asyncfeded import ClientNames, ClientUpdate, Server, TrainTask
from asyncfeded.experiment import build_rule, find_task
from asyncfeded.report import Spread, spread
from asyncfeded.runtime import Membership, run
from asyncfeded.simulation import (
    PAPER_MACHINES,
    DeviceModel,
    InProcess,
    VirtualTransport,
    authors_hangs,
    paper_devices,
)
from asyncfeded_paper.authors import authors_cells

RULES = ("fedavg", "fedprox", "fedasync-constant", "fedasync-hinge")
"""The rules whose K does not change, so that training has no part in their number of updates."""
CLIENTS = 10
LAST_READING_SECONDS = 299.0
"""The authors read their last count about every 2 s: on average 1 s before the end of a run."""
SIZE = 4


@dataclass(frozen=True, slots=True)
class Prediction:
    """One cell: our updates with hangs drawn by seeds and with the authors' own, and theirs.

    A synchronous round counts as many updates as clients that were not suspended, as the authors
    count them.
    """

    task: str
    rule: str
    suspension: float
    drawn: Spread
    replayed: float
    authors: float

    @property
    def drawn_ratio(self) -> float:
        """Ours with drawn hangs in units of the authors'."""
        return self.drawn.mean / self.authors

    @property
    def replayed_ratio(self) -> float:
        """Ours with the authors' hangs in units of theirs."""
        return self.replayed / self.authors


def predictions(
    tasks: Iterable[str], suspensions: Sequence[float], seeds: int
) -> Iterator[Prediction]:
    """Predict all cells of these tasks and P, those that the authors have."""
    known = authors_cells()
    for task in tasks:
        for rule in RULES:
            for suspension in suspensions:
                cell = known.get((task, rule, suspension))
                if cell is not None:
                    yield Prediction(
                        task,
                        rule,
                        suspension,
                        spread(_updates(task, rule, suspension, seed) for seed in range(seeds)),
                        _updates(task, rule, suspension, None),
                        cell.updates,
                    )


def prediction_rows(found: Iterable[Prediction]) -> list[dict[str, object]]:
    """Every cell, as it goes into a file."""
    return [
        {
            "task": cell.task,
            "rule": cell.rule,
            "suspension": cell.suspension,
            "drawn_mean": round(cell.drawn.mean, 1),
            "drawn_sd": round(cell.drawn.sd, 1),
            "drawn_ratio": round(cell.drawn_ratio, 3),
            "replayed": round(cell.replayed, 1),
            "replayed_ratio": round(cell.replayed_ratio, 3),
            "authors": cell.authors,
        }
        for cell in found
    ]


def _updates(task: str, rule: str, suspension: float, seed: int | None) -> float:
    """The mean over the authors' runs, of which some were on a busy machine."""
    profile = find_task(task).paper_devices
    share = busy_share(task, rule, suspension)
    updates = count_updates(task, rule, suspension, seed, profile)
    if share == 0:
        return updates
    return (1 - share) * updates + share * count_updates(
        task, rule, suspension, seed, f"{profile}-busy"
    )


def busy_share(task: str, rule: str, suspension: float) -> float:
    """The share of the authors' runs in which clients 1, 5 and 9 took twice as long.

    It happened on Shakespeare alone. The runs fall into two groups by their number of updates,
    such as 100 and 180 with FedAvg at P = 0.
    """
    if task != "shakespeare":
        return 0.0
    if suspension == 0.1:
        return 7 / 12
    few = suspension > 0.5 or (suspension == 0.5 and rule.startswith("fedasync"))
    return 1 / 6 if few else 2 / 7


def count_updates(
    task: str, rule: str, suspension: float, seed: int | None, profile: str | None = None
) -> int:
    """Carry out a run without any training; count the updates that reach the model.

    Without a seed, the hangs are the authors' own.
    """
    settings = find_task(task)
    profile = settings.paper_devices if profile is None else profile
    machine = PAPER_MACHINES[profile]
    server = Server(
        np.zeros(SIZE, np.float32), build_rule(rule, settings.rule_settings.get(rule, {}))
    )
    barrier = server.rule.on_round_end is not None
    names = list(ClientNames(CLIENTS))
    devices = paper_devices(profile, names, barrier, suspension)
    model = DeviceModel(
        devices,
        seed=0 if seed is None else seed,
        suspension=0.0 if seed is None else suspension,
        jitter=machine.jitter(barrier),
        start_up_seconds=machine.start_up_seconds,
        recorded=authors_hangs(names, suspension) if seed is None else None,
    )
    transport = VirtualTransport(
        model,
        InProcess(_no_training),
        [Membership(name) for name in names],
        LAST_READING_SECONDS,
    )
    updates, version = 0, server.version
    for _ in run(server, transport, LAST_READING_SECONDS):
        if server.version != version:  # the updates of an unfinished synchronous round do not count
            updates, version = server.accepted, server.version
    return updates


def _no_training(task: TrainTask) -> ClientUpdate:
    return ClientUpdate(
        client_id=task.client_id,
        version=task.version,
        delta=np.full(SIZE, 1e-3, np.float32),
        num_examples=1,
        epochs=task.epochs,
        round=task.round,
    )
