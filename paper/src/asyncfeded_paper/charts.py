"""Charts described once and drawn twice: as an image, and to be explored in a browser."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from asyncfeded.report import write_picture
from asyncfeded_paper import drawn_landscapes
from asyncfeded_paper.landscapes import DASHED, SOLID, Landscape

DPI = 130
PANEL_INCHES = (4.6, 3.4)
LANDSCAPE_INCHES = (5.0, 5.8)
LANDSCAPE_PAD_INCHES = 0.09
LEGEND_ROW_INCHES = 0.25
PANEL_PIXELS = 300
LANDSCAPE_PIXELS = 440
TOOLBAR_PIXELS = 34
"""Room above a chart, where the chart library has its buttons."""
LEGEND_ROW_PIXELS = 22
LEGEND_COLUMNS = 2

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """A course of values; `low` and `high` bound a band around it. None leaves a gap.

    A line that is not `listed` belongs to another of its colour, and is not in the legend.
    """

    name: str
    x: Sequence[float]
    y: Values
    colour: str
    low: Values | None = None
    high: Values | None = None
    dashed: bool = False
    marked: bool = False
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers in rows and columns, coloured from −limit (red) to limit (blue); None is empty."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Values]
    limit: float

    @property
    def texts(self) -> list[list[str]]:
        """The numbers as they are shown."""
        return [["" if v is None else f"{v:+.1f}" for v in row] for row in self.values]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    as_percent: bool = False
    logarithmic: bool = False
    landscape: Landscape | None = None
    matrix: Matrix | None = None

    @property
    def listed(self) -> list[str]:
        """The names in the legend."""
        if self.landscape is not None:
            return [*self.landscape.colours, SOLID, DASHED]
        return [line.name for line in self.lines if line.listed]


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels side by side, with one legend."""

    title: str
    panels: Sequence[Panel]
    columns: int = field(default=3)


def save(chart: Chart, path: Path) -> None:
    """Draw a chart as PNG and SVG beside each other; `path` has no suffix."""
    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    on_land = any(panel.landscape is not None for panel in chart.panels)
    listed = {name for panel in chart.panels for name in panel.listed}
    across = len(listed) if on_land else 2 * columns
    below = 0.3 + (LEGEND_ROW_INCHES * -(-len(listed) // across) if listed else 0.0)
    width, height = LANDSCAPE_INCHES if on_land else PANEL_INCHES
    figure = Figure(figsize=(columns * width, rows * height + below))
    layout = ConstrainedLayoutEngine(h_pad=LANDSCAPE_PAD_INCHES if on_land else None)
    figure.set_layout_engine(layout)
    figure.suptitle(chart.title, parse_math=False)
    for index, panel in enumerate(chart.panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        if panel.matrix is None:
            _draw(panel, axes)
        else:
            _draw_matrix(panel, panel.matrix, axes)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        figure.legend(
            handles.values(),
            handles,
            loc="outside lower center",
            ncols=across,
            frameon=False,
            columnspacing=1.2,
            handlelength=1.7,
        )
    # Laid out once for both files, which takes longer than to draw them.
    layout.execute(figure)
    figure.set_layout_engine("none")
    for suffix in (".png", ".svg"):
        # Without a date, the same chart gives the same file.
        metadata = {"Date": None} if suffix == ".svg" else {}
        write_picture(figure, path.with_suffix(suffix), dpi=DPI, metadata=metadata)


def _draw(panel: Panel, axes: Axes) -> None:
    axes.set_title(panel.title, fontsize=10, parse_math=False)
    axes.set_xlabel(panel.x_label, parse_math=False)
    axes.set_ylabel(panel.y_label, parse_math=False)
    if panel.landscape is not None:
        title = panel.title.replace(": ", "\n", 1)
        axes.set_title(title, fontsize=11, parse_math=False)
        drawn_landscapes.draw(panel.landscape, axes)
        return
    for line in panel.lines:
        axes.plot(
            line.x,
            _gaps(line.y),
            color=line.colour,
            label=line.name if line.listed else None,
            linewidth=1.5,
            linestyle="--" if line.dashed else "-",
            marker="o" if line.marked else None,
            markersize=4,
        )
        if line.low is not None and line.high is not None:
            axes.fill_between(
                line.x,
                _gaps(line.low),
                _gaps(line.high),
                color=line.colour,
                alpha=0.15,
                linewidth=0,
            )
    if panel.as_percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if panel.logarithmic:
        axes.set_yscale("log")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_matrix(panel: Panel, matrix: Matrix, axes: Axes) -> None:
    axes.set_title(panel.title, fontsize=10, parse_math=False)
    axes.set_xlabel(panel.x_label, parse_math=False)
    values = np.array([_gaps(row) for row in matrix.values])
    axes.imshow(values, cmap="RdBu", vmin=-matrix.limit, vmax=matrix.limit, aspect="auto")
    axes.set_xticks(range(len(matrix.columns)), matrix.columns, fontsize=8)
    axes.set_yticks(range(len(matrix.rows)), matrix.rows, fontsize=8)
    for row, texts in enumerate(matrix.texts):
        for column, text in enumerate(texts):
            dark = abs(np.nan_to_num(values[row, column])) > 0.6 * matrix.limit
            colour = "white" if dark else "black"
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)


def _interactive_matrix(panel: Panel, matrix: Matrix) -> go.Figure:
    figure = go.Figure()
    figure.add_heatmap(
        x=list(matrix.columns),
        y=[row.replace(", ", ",<br>") for row in matrix.rows],
        z=[list(row) for row in matrix.values],
        text=matrix.texts,
        texttemplate="%{text}",
        colorscale="RdBu",
        zmin=-matrix.limit,
        zmax=matrix.limit,
        showscale=False,
    )
    figure.update_layout(
        template="plotly_white",
        autosize=True,
        height=PANEL_PIXELS,
        margin={"l": 10, "r": 10, "t": TOOLBAR_PIXELS, "b": 45},
    )
    figure.update_xaxes(title=panel.x_label, type="category")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def interactive(panel: Panel) -> go.Figure:
    """One panel for a browser, without its title, which a page can break into lines."""
    if panel.matrix is not None:
        return _interactive_matrix(panel, panel.matrix)
    figure = go.Figure()
    pixels = PANEL_PIXELS if panel.landscape is None else LANDSCAPE_PIXELS
    if panel.landscape is not None:
        drawn_landscapes.add_to(figure, panel.landscape)
    for line in panel.lines:
        if line.low is not None and line.high is not None:
            _add_band(figure, line, line.low, line.high)
        figure.add_scatter(
            x=list(line.x),
            y=list(line.y),
            name=line.name,
            legendgroup=line.colour,
            showlegend=line.listed,
            mode="lines+markers" if line.marked else "lines",
            line={"color": line.colour, "width": 2, "dash": "dash" if line.dashed else "solid"},
        )
    figure.update_layout(
        xaxis_title=panel.x_label,
        yaxis_title=panel.y_label,
        template="plotly_white",
        autosize=True,
        height=pixels + LEGEND_ROW_PIXELS * _legend_rows(panel),
        margin={
            "l": 55,
            "r": 10,
            "t": TOOLBAR_PIXELS,
            "b": 45 + LEGEND_ROW_PIXELS * _legend_rows(panel),
        },
        legend={"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0.01},
        hovermode="closest" if panel.landscape is not None else "x unified",
    )
    if panel.as_percent:
        figure.update_yaxes(tickformat=".0%", hoverformat=".2%")
    if panel.logarithmic:
        figure.update_yaxes(type="log")
    return figure


def _legend_rows(panel: Panel) -> int:
    """How many lines of text a legend has at the least width."""
    listed = panel.listed if panel.landscape is None else panel.landscape.colours
    return -(-len(listed) // LEGEND_COLUMNS)


def _add_band(figure: go.Figure, line: Line, low: Values, high: Values) -> None:
    """A filled outline: there along the upper edge, and back along the lower one."""
    known = [
        (x, below, above)
        for x, below, above in zip(line.x, low, high, strict=True)
        if below is not None and above is not None
    ]
    xs = [x for x, _, _ in known]
    figure.add_scatter(
        x=[*xs, *reversed(xs)],
        y=[*(above for _, _, above in known), *reversed([below for _, below, _ in known])],
        fill="toself",
        fillcolor=line.colour,
        opacity=0.15,
        line={"width": 0},
        legendgroup=line.colour,
        showlegend=False,
        hoverinfo="skip",
    )


def _gaps(values: Values) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
