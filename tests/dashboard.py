"""The dashboard for Grafana, and its queries as Prometheus is asked them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "docs" / "monitoring"
VARIABLES = {"$__rate_interval": "30s", "$job": ".*", "$instance": ".*"}


class Query(NamedTuple):
    panel: str
    unit: str
    text: str
    """With Grafana's variables filled in."""


def queries() -> Iterator[Query]:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            yield Query(panel["title"], panel["fieldConfig"]["defaults"]["unit"], text)
