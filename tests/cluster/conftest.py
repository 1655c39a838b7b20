"""On a busy machine a process of Ray's may take minutes to be ready; that is no failure."""

import pytest

from asyncfeded.cluster import actors, transport, workers
from scripted import LONGEST_SECONDS


@pytest.fixture(autouse=True)
def _processes_may_start_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (actors, transport, workers):
        monkeypatch.setattr(module, "START_SECONDS", LONGEST_SECONDS)
