"""A report as one file: charts to explore, tables, and images for paper and for print."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from asyncfeded.store import write_text
from asyncfeded_paper.charts import Chart, interactive


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the first column says what a row is, the others are figures."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    bold: frozenset[tuple[int, int]] = frozenset()
    """Cells that stand out, as (row, column)."""
    folded: bool = False

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.headings) for row in self.rows), self.caption


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report."""

    anchor: str
    title: str
    paragraphs: Sequence[str] = ()
    chart: Chart | None = None
    image: Path | None = None
    grids: Sequence[Grid] = ()
    command: str = ""
    files: Sequence[str] = field(default=())


def write_page(path: Path, title: str, lead: Sequence[str], sections: Sequence[Section]) -> None:
    """Write a page that needs nothing but itself."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["plot"] = _plots
    environment.filters["picture"] = _picture
    template = environment.from_string((files(__package__) / "page.html.j2").read_text("utf-8"))
    text = template.render(
        title=title, lead=lead, sections=sections, plotly=_trusted(get_plotlyjs())
    )
    write_text(path, text)


def _plots(chart: Chart) -> Markup:
    """Every panel of a chart, each as wide as the page lets it be."""
    parts = []
    for panel in chart.panels:
        plot = interactive(panel).to_html(
            full_html=False,
            include_plotlyjs=False,
            config={"responsive": True, "displaylogo": False},
        )
        parts.append(f'<div class="panel"><h3>{escape(panel.title)}</h3>{plot}</div>')
    return _trusted("\n".join(parts))


def _trusted(text: str) -> Markup:
    """Text of the chart library's own making, which goes into the page as it is."""
    return Markup(text)  # noqa: S704


def _picture(image: Path) -> str:
    return f"data:image/png;base64,{b64encode(image.read_bytes()).decode()}"
