"""Plots: accuracy over time, of one run and of several rules side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, PercentFormatter

from asyncfeded.report.pictures import write_picture
from asyncfeded.report.spread import deviation

# Okabe and Ito's colours, which are told apart by colour-blind readers too.
COLOURS = ("#D55E00", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#000000")
LINES = ("-", "--", ":", "-.")
"""When all colours are used, they come again with another line."""
DPI = 150
WIDTH, HEIGHT = 8, 4.5
MOST_TICKS = 90
MOST_ROWS = 40
SMOOTHED_FROM = 60
"""Fewer points show their own course; a mean of five would blur it."""


def metrics_over_time(
    path: str | Path,
    seconds: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    title: str,
    time: str = "virtual time (s)",
) -> None:
    """Draw one run, a panel per metric.

    A panel has what was measured and, of a long run, the mean of five neighbours.
    """
    figure = Figure(figsize=(WIDTH, HEIGHT * len(curves)), layout="constrained")
    rows = figure.subplots(len(curves), squeeze=False)[:, 0]
    rows[0].set_title(title, loc="left", fontsize="medium")
    for axes, (name, values) in zip(rows, curves.items(), strict=True):
        _style(axes, name, time)
        raw = np.asarray(values, dtype=float)
        axes.plot(seconds, raw, color=COLOURS[0], linewidth=1.8, label="measured")
        if len(raw) >= SMOOTHED_FROM:
            axes.plot(seconds, smoothed(raw, 5), color="0.35", linestyle=":", label="mean of 5")
        axes.legend(loc="lower right" if name == "accuracy" else "best", frameon=False)
    write_picture(figure, path, dpi=DPI)


def rules_over_time(
    path: str | Path,
    seconds: Sequence[float],
    values: Mapping[str, npt.NDArray[np.float64]],
    title: str,
    time: str = "virtual time (s)",
    metric: str = "accuracy",
) -> None:
    """Draw rules side by side, as the paper's Figure 2 does.

    `values` has one array of (seeds, seconds) per rule. The line is the mean over seeds, the
    band one standard deviation either way. `time` says what the seconds are.
    """
    figure, axes = _axes(title, metric, time)
    figure.set_figheight(max(HEIGHT, 0.5 + 0.24 * len(values)))  # room for all names
    for index, (rule, runs) in enumerate(values.items()):
        colour = COLOURS[index % len(COLOURS)]
        line = LINES[index // len(COLOURS) % len(LINES)]
        mean, sd = runs.mean(axis=0), deviation(runs)
        axes.plot(seconds, mean, color=colour, linestyle=line, linewidth=1.8, label=rule)
        if len(runs) > 1:
            axes.fill_between(seconds, mean - sd, mean + sd, color=colour, alpha=0.18, linewidth=0)
    figure.legend(loc="outside right upper", frameon=False, handlelength=3)
    write_picture(figure, path, dpi=DPI)


def class_distribution(
    path: str | Path,
    clients: Sequence[str],
    classes: Sequence[str],
    counts: npt.NDArray[np.int64],
    title: str,
) -> None:
    """Draw how many examples of each class each client has: a row per client."""
    width = min(16.0, 4.0 + 0.2 * len(classes))
    height = min(14.0, 1.8 + 0.28 * len(clients))
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    shown = np.ma.masked_equal(counts, 0)
    scale = LogNorm(1, max(2, counts.max()))  # a few classes can outnumber the rest a hundredfold
    image = axes.imshow(shown, aspect="auto", cmap="viridis_r", interpolation="nearest", norm=scale)
    axes.set_title(title, parse_math=False)
    axes.set_xlabel("class")
    every = max(1, len(classes) // MOST_TICKS)
    axes.set_xticks(range(0, len(classes), every), classes[::every], fontsize=8, parse_math=False)
    every = 1 + len(clients) // MOST_ROWS
    labels = [f"{name}: {row.sum()}" for name, row in zip(clients, counts, strict=True)]
    axes.set_yticks(range(0, len(clients), every), labels[::every], fontsize=8, parse_math=False)
    figure.colorbar(
        image, label="examples", pad=0.01, format="{x:g}", ticks=LogLocator(subs=(1, 3))
    )
    write_picture(figure, path, dpi=DPI)


def image_rows(
    path: str | Path, clients: Sequence[str], rows: Sequence[npt.NDArray[np.uint8]], title: str
) -> None:
    """Draw some images of each client, a row each."""
    width = max(len(row) for row in rows)
    figure = Figure(figsize=(3.0 + 0.32 * width, 0.8 + 0.34 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    side = rows[0].shape[1]
    sheet = np.full((side * len(rows), side * width), 255, dtype=np.uint8)
    for index, row in enumerate(rows):
        sheet[index * side : (index + 1) * side, : side * len(row)] = np.hstack(list(row))
    axes.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks(side * np.arange(len(rows)) + side / 2, clients, fontsize=8, parse_math=False)
    write_picture(figure, path, dpi=DPI, bbox_inches="tight")


def smoothed(values: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """The mean of each value and its neighbours, `width` (odd) in all, fewer at the ends."""
    reach = width // 2
    sums = np.cumsum(np.concatenate(([0.0], values)))
    index = np.arange(len(values))
    starts, ends = np.maximum(0, index - reach), np.minimum(len(values), index + reach + 1)
    means: npt.NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return means


def _axes(title: str, metric: str, time: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize="medium")
    _style(axes, metric, time)
    return figure, axes


def _style(axes: Axes, metric: str, time: str) -> None:
    axes.set_xlabel(time)
    axes.set_ylabel(f"test {metric}", parse_math=False)
    axes.margins(x=0.01)
    if metric == "accuracy":
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
