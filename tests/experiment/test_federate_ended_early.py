"""Whatever ends a run early, the module has the last version and the result is at hand."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import LocalTraining, federate
from asyncfeded.core.errors import AsyncFedEDError, FileError, TrainingError
from asyncfeded.result import Result
from asyncfeded.runtime.events import Event, Received
from asyncfeded.store.log import EventLog


def federated(module: nn.Module, **changes: Any) -> Result:
    draw = torch.Generator().manual_seed(1)
    inputs = [torch.randn(20, 5, generator=draw) for _ in range(3)]
    return federate(
        module,
        [(x, (x[:, 0] > 0).long()) for x in inputs],
        **{"seconds": 3.0, "training": LocalTraining(learning_rate=0.1), **changes},
    )


class Stop:
    """Raises after so many updates."""

    def __init__(self, updates: int, error: BaseException) -> None:
        self.left = updates
        self.error = error

    def __call__(self, event: Event, _: object) -> None:
        self.left -= isinstance(event, Received)
        if self.left == 0:
            raise self.error


@pytest.mark.parametrize("kind", [KeyboardInterrupt, BrokenPipeError, ZeroDivisionError])
def test_a_callback_that_raises_leaves_module_log_and_result(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    module = nn.Linear(5, 2)
    before = module.weight.detach().clone()
    log = tmp_path / "events.jsonl"
    with pytest.raises(kind) as caught:
        federated(module, callbacks=[EventLog(log), Stop(4, kind("stopped"))])
    result: Result = caught.value.result  # type: ignore[attr-defined]
    assert (result.updates, result.versions, result.finished) == (4, 5, False)
    assert result.ended_by == f"{kind.__name__}: stopped"
    assert not torch.equal(module.weight, before)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(event["event"] == "update" for event in events) == 4
    assert result.log_sha256 == sha256(log.read_bytes()).hexdigest()
    assert result.wall_seconds > 0


def test_the_module_has_the_version_of_the_last_update_that_was_told(tmp_path: Path) -> None:
    whole, stopped = nn.Linear(5, 2), nn.Linear(5, 2)
    stopped.load_state_dict(whole.state_dict())
    log = tmp_path / "events.jsonl"
    with pytest.raises(KeyboardInterrupt):
        federated(stopped, callbacks=[EventLog(log), Stop(3, KeyboardInterrupt())])
    last = json.loads(log.read_text().splitlines()[-1])
    federated(whole, seconds=np.nextafter(last["seconds"], np.inf))
    assert torch.equal(whole.weight, stopped.weight)


def test_training_that_raises_gives_the_result_until_then() -> None:
    def failing(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(TrainingError) as caught:
        federated(nn.Linear(5, 2), loss=failing, test=(torch.zeros(1, 5), torch.zeros(1).long()))
    result: Result = caught.value.result  # type: ignore[attr-defined]
    assert not result.finished
    assert result.ended_by is not None
    assert result.ended_by.startswith("TrainingError: ")


def test_a_log_on_a_full_disk_gives_the_result_without_a_digest() -> None:
    module = nn.Linear(5, 2)
    before = module.weight.detach().clone()
    with pytest.raises(FileError, match="log '/dev/full' cannot be written: No space") as caught:
        federated(module, callbacks=[EventLog("/dev/full")], seconds=30.0)
    result: Result = caught.value.result  # type: ignore[attr-defined]
    assert (result.finished, result.log_sha256) == (False, "")
    assert not torch.equal(module.weight, before)


def test_a_whole_run_is_finished_and_its_log_may_be_named_by_a_text(tmp_path: Path) -> None:
    result = federated(nn.Linear(5, 2), callbacks=[EventLog(str(tmp_path / "log"))])
    assert (result.finished, result.ended_by) == (True, None)
    assert result.log_sha256 == sha256((tmp_path / "log").read_bytes()).hexdigest()


def test_a_log_that_is_no_path_is_refused_in_one_line() -> None:
    with pytest.raises(AsyncFedEDError, match=r"log must be a path; given 7"):
        federated(nn.Linear(5, 2), callbacks=[EventLog(7)])  # type: ignore[arg-type]
    with pytest.raises(AsyncFedEDError, match=r"log 'a\\x00b' cannot be written: "):
        federated(nn.Linear(5, 2), callbacks=[EventLog("a\0b")])
