"""The runs that are kept in results/store stay valid: they are found by their settings."""

import json
from pathlib import Path
from typing import Any

from asyncfeded_paper.record import Record, key

STORE = Path(__file__).parent.parent / "results" / "store"


def stored() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in STORE.glob("*.json")}


def test_every_stored_run_has_the_name_that_its_settings_give() -> None:
    runs = stored()
    assert len(runs) >= 128
    assert {name: key(run["settings"]) for name, run in runs.items()} == {n: n for n in runs}


def test_every_stored_run_is_whole() -> None:
    for name, run in stored().items():
        record = Record(**run)
        assert record.key == name
        assert len(record.seconds) == len(record.accuracy) == len(record.loss) > 100
