"""What holds for every test: it does not touch the user's own files, and one process compiles.

A conftest.py imports these fixtures.
"""

import fcntl
import os
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folders_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and write no data and caches of the user's."""
    monkeypatch.setenv("ASYNCFEDED_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ASYNCFEDED_DATA_DIR", str(tmp_path / "data"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Let the first of several test processes compile; the others find its code on disk.

    A fixture would do this in the time that a process's first test has: on a busy machine a test
    that takes milliseconds could fail by it.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        with Path(__file__).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            compile_everything()


@cache
def compile_everything() -> None:
    """Make a short run that calls every compiled function."""
    import torch

    from asyncfeded import LocalTraining, VersionHistory, federate

    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    data = [(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))] * 2
    training = LocalTraining(kernel="compiled")
    for history in (VersionHistory(), VersionHistory("sketch")):
        federate(module, data, seconds=1, training=training, history=history)
