"""No test reads or writes the user's own data and caches; and what several tests look at."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

import toy
from command_line import asyncfeded_here

hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

SMALL_EVALUATION = (
    *("paper", "--task", "synthetic-1-1", "--seconds", "8", "--seeds", "2", "--table", "1"),
    *(word for number in range(1, 6) for word in ("--figure", str(number))),
    *("--suspension", "0", "--suspension", "0.5", "--workers", "2"),
)

TOGETHER = {
    "tests/cluster/": "one Ray",
    "tests/experiment/paper/test_report": "one evaluation",
}
"""Beginnings of the names of tests that share what takes long to make: they run in one process."""
FOLDER_OF_RAY = "cluster"


class _Together(LoadScopeScheduling):  # type: ignore[misc]
    """Spreads tests over processes one by one, but for those that share something."""

    def _split_scope(self, nodeid: str) -> str:
        return next((TOGETHER[start] for start in TOGETHER if nodeid.startswith(start)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Together:
    """Group tests by name: xdist's own marks of groups have no effect with this pytest."""
    return _Together(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that share something as slow."""
    for item in items:
        if item.nodeid.startswith(tuple(TOGETHER)):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _folders_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYNCFEDED_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ASYNCFEDED_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture(scope="session", autouse=True)
def _one_process_compiles(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the first of several test processes compile; the others find its code on disk."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    with (tmp_path_factory.getbasetemp().parent / "compiling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compile_everything()


def compile_everything() -> None:
    """Make a short run that calls every compiled function."""
    import torch

    from asyncfeded import LocalTraining, VersionHistory, federate

    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    data = [(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))] * 2
    training = LocalTraining(kernel="compiled")
    for history in (VersionHistory(), VersionHistory("sketch")):
        federate(module, data, seconds=1, training=training, history=history)


@pytest.fixture(scope="session")
def small_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures 1 to 5 and Table 1 of the paper, from short runs."""
    folder = tmp_path_factory.mktemp("evaluation") / "paper"
    done = asyncfeded_here(*SMALL_EVALUATION, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(autouse=True)
def _processes_of_ray_may_start_slowly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a process of Ray's may take minutes to be ready; that is no failure."""
    if request.path.parent.name != FOLDER_OF_RAY:
        return
    from asyncfeded.cluster import actors, transport, workers
    from scripted import LONGEST_SECONDS

    for module in (actors, transport, workers):
        monkeypatch.setattr(module, "START_SECONDS", LONGEST_SECONDS)


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    """One Ray for all tests that need one: to start it takes seconds."""
    import ray.cloudpickle

    from asyncfeded.cluster.session import ray_session

    with ray_session():
        # Ray's processes do not find the modules of tests: what is in them travels whole.
        ray.cloudpickle.register_pickle_by_value(toy)
        yield
