"""No test reads or writes the user's own data and caches; and what several tests look at."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import toy
from command_line import asyncfeded_here

hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

SMALL_EVALUATION = (
    *("paper", "--task", "synthetic-1-1", "--seconds", "2", "--seeds", "2", "--table", "1"),
    *(word for number in range(1, 6) for word in ("--figure", str(number))),
    *("--suspension", "0", "--suspension", "0.5", "--workers", "2"),
)

SHARED_FIXTURES = {"ray_here": "one Ray", "small_evaluation": "one evaluation"}
"""What takes long to make: all tests that use it run in one process, and are slow."""
FOLDERS_OF_RAY = ("cluster",)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups and pytest the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests together that share something, and mark them as slow."""
    here = Path(__file__).parent
    for item in items:
        groups = {SHARED_FIXTURES[name] for name in SHARED_FIXTURES if name in fixtures_of(item)}
        if item.path.parent.relative_to(here).as_posix() in FOLDERS_OF_RAY:
            groups.add("one Ray")
        for group in groups:
            item.add_marker(pytest.mark.xdist_group(group))
            item.add_marker(pytest.mark.slow)


def fixtures_of(item: pytest.Item) -> list[str]:
    """The names of all fixtures that a test uses, also through other fixtures."""
    names: list[str] = getattr(item, "fixturenames", [])
    return names


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

    from asyncfeded import federate

    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    data = [(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))] * 2
    federate(module, data, seconds=1, kernel="compiled", history="everything")
    federate(module, data, seconds=1, kernel="compiled", history="sketch")


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
    if request.path.parent.name not in FOLDERS_OF_RAY:
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
