"""Figure 1: a late update that is useful all the same, on the Griewank function.

Four clients start from the same version and train on data that pull them in different directions.
While they do, four fast clients lead the model around and nearly back. The four arrive one after
another, the last with the largest lag. The model has not gone far, though: by its distance the last
update is still fresh. Server and rules are those of any other run, in two dimensions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import cos, sin, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded import ClientUpdate, Rule, Server, TrainTask
from asyncfeded.rules import asyncfeded, fedasync
from asyncfeded_paper.charts import Chart, Panel
from asyncfeded_paper.landscapes import Arrow, Landscape, Mark, Point

START = (1.3, 1.8)
EPOCHS = 10
RATE = 0.12
PULLS = {
    "client 1": (0.73, -0.84),
    "client 2": (-0.74, 0.76),
    "client 3": (0.58, -0.51),
    "client 4": (0.59, 0.81),
}
"""What a client's data add to the gradient: no two agree. The last to arrive leads downhill."""
FAST_PULLS = {
    "fast 1": (-1.21, 0.05),
    "fast 2": (0.14, -0.81),
    "fast 3": (1.03, -0.10),
    "fast 4": (-0.26, 0.70),
}
"""Each fast client goes on from where the one before it has led the model."""
FULL_WEIGHT = 0.5
"""Of a fresh update, under either rule."""
COLOURS = dict(zip(PULLS, ("#D55E00", "#0072B2", "#009E73", "#AA3377"), strict=True))
FAST_COLOUR, FAST_NAME = "#444444", "fast clients"
LEFT, RIGHT, BOTTOM, TOP = -0.5, 2.3, -0.35, 2.65


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
    """The toy example under one rule: where the model was after each step, and what was trained."""

    rule: str
    weighed: str
    """By what the rule weighs an update."""
    path: list[Point]
    ends: dict[str, Point]
    arrivals: list[LateArrival]


def griewank(x: float, y: float) -> float:
    """The function, which has its lowest point at 0, 0."""
    return 1 + (x * x + y * y) / 4000 - cos(x) * cos(y / sqrt(2))


def play(rule: Rule[Any], weighed: str) -> Example:
    """Let the fast clients arrive, and then the four."""
    server = Server(np.array(START, dtype=np.float32), rule)
    late = {name: server.join(name) for name in PULLS}
    path = [_point(server.parameters)]
    for name, pull in FAST_PULLS.items():
        server.receive(_trained(server.join(name), pull))
        path.append(_point(server.parameters))
    arrivals = []
    for name, pull in PULLS.items():
        update = _trained(late[name], pull)
        gone = float(np.linalg.norm(server.parameters - late[name].parameters))
        receipt = server.receive(update)
        assert receipt.lag is not None
        path.append(_point(server.parameters))
        arrivals.append(
            LateArrival(
                client=name,
                lag=receipt.lag,
                distance_staleness=gone / float(np.linalg.norm(update.delta)),
                weight=receipt.figures["learning_rate"] / FULL_WEIGHT,
                loss_before=griewank(*path[-2]),
                loss_after=griewank(*path[-1]),
            )
        )
    ends = {
        name: _point(task.parameters + _trained(task, PULLS[name]).delta)
        for name, task in late.items()
    }
    return Example(rule.name, weighed, path, ends, arrivals)


def examples() -> list[Example]:
    """The same clients under a weight by lag and under one by distance."""
    return [
        play(fedasync(FULL_WEIGHT, "hinge", a=5.0, b=5.0), "by lag"),
        play(asyncfeded(lam=FULL_WEIGHT, eps=1.0, kappa=0.0), "by distance"),
    ]


def chart(shown: list[Example]) -> Chart:
    """The function's contours with the four updates and the steps of the model, rule by rule."""
    x, y = np.linspace(LEFT, RIGHT, 141), np.linspace(BOTTOM, TOP, 151)
    evaluate: Callable[..., npt.NDArray[np.float64]] = np.vectorize(griewank)
    z = evaluate(x[None, :], y[:, None])
    marks = [
        Mark("start", START, "circle", "#000000"),
        Mark("minimum", (0.0, 0.0), "star", "#F0E442"),
    ]
    panels = []
    for example in shown:
        last = example.arrivals[-1]
        title = (
            f"{example.rule}, weight {example.weighed}: the late update counts {last.weight:.0%}, "
            f"loss {last.loss_before:.2f} → {last.loss_after:.2f}"
        )
        land = Landscape(x, y, z, [*_updates(example), *_steps(example)], marks)
        panels.append(Panel(title, "x", "y", [], landscape=land))
    return Chart("Figure 1. A late but useful update on the Griewank function", panels, columns=2)


def _updates(example: Example) -> Iterator[Arrow]:
    """What the four clients trained, all from the same version."""
    for name, end in example.ends.items():
        label = "late but useful" if name == example.arrivals[-1].client else ""
        about = f"the update of {name}, trained on the first version"
        yield Arrow(
            name, example.path[0], end, COLOURS[name], dashed=True, label=label, about=about
        )


def _steps(example: Example) -> Iterator[Arrow]:
    """What the server made of every update."""
    told = [f"{name}: not late" for name in FAST_PULLS]
    told += [
        f"{late.client}: lag {late.lag}, weight {late.weight:.0%}" for late in example.arrivals
    ]
    names = [*(FAST_NAME for _ in FAST_PULLS), *PULLS]
    moves = zip(names, told, pairwise(example.path), strict=True)
    for number, (name, about, (start, end)) in enumerate(moves, start=1):
        colour = COLOURS.get(name, FAST_COLOUR)
        yield Arrow(name, start, end, colour, number=number, about=f"step {number}, {about}")


def _trained(task: TrainTask, pull: Point) -> ClientUpdate:
    """K steps of gradient descent on the function with the client's pull."""
    x, y = (float(value) for value in task.parameters)
    for _ in range(EPOCHS):
        slope_x = x / 2000 + sin(x) * cos(y / sqrt(2)) + pull[0]
        slope_y = y / 2000 + cos(x) * sin(y / sqrt(2)) / sqrt(2) + pull[1]
        x, y = x - RATE * slope_x, y - RATE * slope_y
    delta = np.array([x, y], dtype=np.float32) - task.parameters
    return ClientUpdate(task.client_id, task.version, delta, 1, task.epochs, task.round)


def _point(vector: npt.NDArray[np.float32]) -> Point:
    x, y = vector
    return float(x), float(y)
