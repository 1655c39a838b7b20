"""What a log cannot hold or cannot write is said in one line."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asyncfeded.core.errors import FileError, RuleError
from asyncfeded.core.messages import Receipt
from asyncfeded.runtime.events import Joined, Received, Started
from asyncfeded.store.log import EventLog


def received(figures: Mapping[str, Any]) -> Received:
    return Received(1.0, 0, 1, 10, Receipt("a", True, 2, figures=figures))


def test_figures_of_numpy_types_are_written_as_plain_numbers(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(received({"half": np.float32(0.5), "count": np.int64(3), "all": np.bool_(True)}))
    record = json.loads(path.read_text())
    assert (record["half"], record["count"], record["all"]) == (0.5, 3, True)
    assert log.sha256 == sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["version", "client", "event", "seconds", "delta_norm"])
def test_a_figure_with_the_name_of_a_field_of_the_log_is_refused(name: str) -> None:
    log = EventLog()
    log.write(Started(0.0, "mine", "00"))
    with pytest.raises(RuleError, match=f"rule 'mine' must not name a figure '{name}', which is a"):
        log.write(received({name: 7.0}))


@pytest.mark.parametrize("value", [float("nan"), np.float32("inf"), object(), 1j])
def test_a_figure_that_is_no_finite_number_is_named_with_its_rule(
    tmp_path: Path, value: object
) -> None:
    path = tmp_path / "events.jsonl"
    message = "rule 'mine' must give figures that are finite numbers; given {'odd': "
    with pytest.raises(RuleError, match=message), EventLog(path) as log:  # noqa: PT012
        log.write(Started(0.0, "mine", "00"))
        log.write(received({"fine": 1.0, "odd": value}))
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["start"]


def test_a_full_disk_is_named_with_the_log() -> None:
    log = EventLog("/dev/full")
    message = "log '/dev/full' cannot be written: No space left"
    with pytest.raises(FileError, match=message), log:
        log.write(Joined(0.0, "a", 1, 10))
    assert log.sha256 == ""


def test_a_log_on_a_full_disk_does_not_hide_what_ended_the_run() -> None:
    log = EventLog(Path("/dev/full"))

    def fail() -> None:
        with log:
            log.write(Joined(0.0, "a", 1, 10))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
