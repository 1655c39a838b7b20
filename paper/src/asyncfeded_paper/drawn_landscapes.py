"""A landscape drawn twice: as an image, and to be explored in a browser."""

from math import cos, radians, sin

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from asyncfeded_paper.landscapes import DASHED, SOLID, Arrow, Landscape, Mark

LEVELS = 13
LOWEST, HIGHEST = "#FFFFFF", "#B9C3CE"
"""Shades that all arrows are seen on."""
SYMBOLS = {"star": "*", "circle": "o"}
LABEL_SHARE = 0.7
"""How far along its arrow a label stands."""


def draw(land: Landscape, axes: Axes) -> None:
    """Draw it as an image, with equal axes."""
    levels = np.linspace(float(land.z.min()), float(land.z.max()), LEVELS)
    shades = LinearSegmentedColormap.from_list("shades", [LOWEST, HIGHEST])
    axes.contourf(land.x, land.y, land.z, levels=levels, cmap=shades)
    axes.contour(land.x, land.y, land.z, levels=levels, colors="#8794A3", linewidths=0.5)
    axes.set_aspect("equal")
    for arrow in land.arrows:
        _draw_arrow(arrow, land.is_short(arrow), axes)
    for arrow, at in land.numbers():
        axes.text(
            *at,
            str(arrow.number),
            bbox={"boxstyle": "circle,pad=0.22", "facecolor": arrow.colour, "edgecolor": "white"},
            color="white",
            fontsize=9,
            fontweight="bold",
            ha="center",
            va="center",
            zorder=7,
        )
    for mark in land.marks:
        _draw_mark(mark, axes)
    for name, colour in land.colours.items():
        axes.plot([], [], color=colour, linewidth=2.6, label=name)
    axes.plot([], [], color="black", linewidth=2.6, label=SOLID)
    axes.plot([], [], color="black", linewidth=1.3, linestyle="--", label=DASHED)


def _draw_arrow(arrow: Arrow, short: bool, axes: Axes) -> None:
    style = {
        "arrowstyle": "-|>,head_length=0.5,head_width=0.25",
        "color": arrow.colour,
        "linewidth": 1.3 if arrow.dashed else 2.6,
        "linestyle": (0, (4, 2.5)) if arrow.dashed else "-",
        "mutation_scale": 7 if short else 14,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    # A short step lies on top, or the head of the one before it would hide it.
    level = 3 if arrow.dashed else 5 if short else 4
    axes.annotate("", arrow.end, arrow.start, arrowprops=style, zorder=level)
    if arrow.label:
        turn = radians(arrow.turned)
        axes.annotate(
            arrow.label,
            arrow.at(LABEL_SHARE),
            xytext=(6 * sin(turn), -6 * cos(turn)),
            textcoords="offset points",
            rotation=arrow.turned,
            rotation_mode="anchor",
            ha="center",
            va="top",
            fontsize=10,
            color=arrow.colour,
            zorder=7,
        )


def _draw_mark(mark: Mark, axes: Axes) -> None:
    axes.plot(
        *mark.at,
        SYMBOLS[mark.symbol],
        markersize=17 if mark.symbol == "star" else 8,
        color=mark.colour,
        markeredgecolor="black",
        zorder=6,
    )
    axes.annotate(
        mark.text,
        mark.at,
        xytext=(8, -11),
        textcoords="offset points",
        fontsize=10,
        ha="left",
        va="center",
        zorder=7,
    )


def add_to(figure: go.Figure, land: Landscape) -> None:
    """Add it to a figure in a browser."""
    figure.add_contour(
        x=np.round(land.x, 4),
        y=np.round(land.y, 4),
        z=np.round(land.z, 4),
        colorscale=[[0, LOWEST], [1, HIGHEST]],
        ncontours=LEVELS,
        line={"color": "#8794A3", "width": 0.5},
        showscale=False,
        hoverinfo="skip",
    )
    listed = set[str]()
    for arrow in land.arrows:
        figure.add_scatter(
            x=[arrow.start[0], arrow.end[0]],
            y=[arrow.start[1], arrow.end[1]],
            name=arrow.name,
            legendgroup=arrow.name,
            showlegend=not arrow.dashed and arrow.name not in listed,
            mode="lines+markers",
            line={
                "color": arrow.colour,
                "width": 1.5 if arrow.dashed else 3,
                "dash": "dash" if arrow.dashed else "solid",
            },
            marker={
                "symbol": "arrow",
                "angleref": "previous",
                "size": [0, 8 if land.is_short(arrow) else 14],
                "opacity": 1,
                "color": arrow.colour,
            },
            text=arrow.about,
            hoverinfo="text",
        )
        if not arrow.dashed:
            listed.add(arrow.name)
        if arrow.label:
            turn = radians(arrow.turned)
            x, y = arrow.at(LABEL_SHARE)
            figure.add_annotation(
                x=x,
                y=y,
                text=arrow.label,
                textangle=-arrow.turned,
                showarrow=False,
                xshift=9 * sin(turn),
                yshift=-9 * cos(turn),
                font={"color": arrow.colour, "size": 12},
            )
    numbers = land.numbers()
    figure.add_scatter(
        x=[at[0] for _, at in numbers],
        y=[at[1] for _, at in numbers],
        text=[f"{arrow.number}" for arrow, _ in numbers],
        hovertext=[arrow.about for arrow, _ in numbers],
        hoverinfo="text",
        mode="markers+text",
        marker={"size": 17, "color": [arrow.colour for arrow, _ in numbers]},
        textfont={"color": "white", "size": 11},
        showlegend=False,
    )
    for mark in land.marks:
        figure.add_scatter(
            x=[mark.at[0]],
            y=[mark.at[1]],
            text=[mark.text],
            hoverinfo="text",
            mode="markers+text",
            textposition="bottom right",
            marker={
                "symbol": mark.symbol,
                "size": 15 if mark.symbol == "star" else 9,
                "color": mark.colour,
                "line": {"color": "black", "width": 1},
            },
            showlegend=False,
        )
    figure.update_xaxes(range=[land.x[0], land.x[-1]], constrain="domain")
    figure.update_yaxes(range=[land.y[0], land.y[-1]], scaleanchor="x", constrain="domain")
