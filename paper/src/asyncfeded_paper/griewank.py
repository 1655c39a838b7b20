"""Figure 1: a late update that is useful all the same, on the Griewank function.

Four clients start from the same version and train on data that pull them in different directions;
while they do, fast clients move the model to and fro. The four arrive one after another, the last
with the largest lag. The model has not gone far, though: by its distance the last update is as
fresh as the first. Server and rules are those of any other run, in two dimensions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, sin, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded import ClientUpdate, Rule, Server, TrainTask
from asyncfeded.rules import asyncfeded, fedasync
from asyncfeded_paper.charts import Chart, Landscape, Line, Panel

START = (1.25, 1.9)
EPOCHS = 10
RATE = 0.12
PULLS = {
    "client 1": (0.55, -0.30),
    "client 2": (-0.50, 0.45),
    "client 3": (0.10, -0.45),
    "client 4": (0.25, 0.30),
}
"""What a client's data add to the gradient: no two agree. The last to arrive leads downhill."""
FAST_PULLS = {"fast 1": (1.3, -0.9), "fast 2": (-1.3, 0.9)}
"""The fast clients pull to and fro, across the slope."""
FAST_ROUNDS = 2
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
EDGE = 2.6


@dataclass(frozen=True, slots=True)
class LateArrival:
    """One of the four updates: how stale it was by either measure, and what it was worth."""

    client: str
    lag: int
    distance_staleness: float
    weight: float
    """The share of the weight that a fresh update would have had."""
    loss_before: float
    loss_after: float


@dataclass(frozen=True, slots=True)
class Example:
    """The toy example under one rule."""

    rule: str
    path: list[tuple[float, float]]
    ends: dict[str, tuple[float, float]]
    arrivals: list[LateArrival]


def griewank(x: float, y: float) -> float:
    """The function, which has its lowest point at 0, 0."""
    return 1 + (x * x + y * y) / 4000 - cos(x) * cos(y / sqrt(2))


def play(rule: Rule[Any], full_weight: float) -> Example:
    """Let the fast clients and then the four arrive."""
    server = Server(np.array(START, dtype=np.float32), rule)
    late = {name: server.join(name) for name in PULLS}
    fast = {name: server.join(name) for name in FAST_PULLS}
    path = [_point(server.parameters)]
    for _ in range(FAST_ROUNDS):
        for name, pull in FAST_PULLS.items():
            receipt = server.receive(_trained(fast[name], pull))
            assert receipt.next_task is not None
            fast[name] = receipt.next_task
            path.append(_point(server.parameters))
    arrivals = []
    for name, pull in PULLS.items():
        update = _trained(late[name], pull)
        before = _point(server.parameters)
        gone = float(np.linalg.norm(server.parameters - late[name].parameters))
        receipt = server.receive(update)
        assert receipt.lag is not None
        path.append(_point(server.parameters))
        arrivals.append(
            LateArrival(
                client=name,
                lag=receipt.lag,
                distance_staleness=gone / float(np.linalg.norm(update.delta)),
                weight=receipt.figures["learning_rate"] / full_weight,
                loss_before=griewank(*before),
                loss_after=griewank(*path[-1]),
            )
        )
    ends = {
        name: _point(task.parameters + _trained(task, PULLS[name]).delta)
        for name, task in late.items()
    }
    return Example(rule.name, path, ends, arrivals)


def examples() -> list[Example]:
    """The same clients under a weight by lag and under one by distance."""
    most = 0.5  # the weight of a fresh update under either
    return [
        play(fedasync(most, "hinge", a=5.0, b=5.0), full_weight=most),
        play(asyncfeded(lam=most, eps=1.0, kappa=0.0), full_weight=most),
    ]


def chart(shown: list[Example]) -> Chart:
    """The function's contours with the four updates and the way of the model, rule by rule."""
    side = np.linspace(-EDGE, EDGE, 121)
    evaluate: Callable[..., np.ndarray] = np.vectorize(griewank)
    land = Landscape(side, side, evaluate(side[None, :], side[:, None]))
    panels = []
    for example in shown:
        start = example.path[0]
        lines = [
            Line(name, [start[0], end[0]], [start[1], end[1]], colour, dashed=True, marked=True)
            for (name, end), colour in zip(example.ends.items(), COLOURS, strict=True)
        ]
        xs, ys = zip(*example.path, strict=True)
        lines.append(Line("the model", xs, ys, "#000000", marked=True))
        title = f"{example.rule}: weight of the last update {example.arrivals[-1].weight:.0%}"
        panels.append(Panel(title, "x", "y", lines, landscape=land))
    return Chart("Figure 1. A late but useful update on the Griewank function", panels, columns=2)


def _trained(task: TrainTask, pull: tuple[float, float]) -> ClientUpdate:
    """K steps of gradient descent on the function with the client's pull."""
    x, y = (float(value) for value in task.parameters)
    for _ in range(EPOCHS):
        slope_x = x / 2000 + sin(x) * cos(y / sqrt(2)) + pull[0]
        slope_y = y / 2000 + cos(x) * sin(y / sqrt(2)) / sqrt(2) + pull[1]
        x, y = x - RATE * slope_x, y - RATE * slope_y
    delta = np.array([x, y], dtype=np.float32) - task.parameters
    return ClientUpdate(task.client_id, task.version, delta, 1, task.epochs, task.round)


def _point(vector: npt.NDArray[np.float32]) -> tuple[float, float]:
    x, y = vector
    return float(x), float(y)
