"""How tests are spread over processes, and what those of Ray share."""

import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

import toy
from every_test import folders_of_this_test, pytest_runtestloop

__all__ = ["folders_of_this_test", "pytest_runtestloop"]

hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

TOGETHER = {
    "tests/cluster/": "one Ray",
    "paper/tests/test_report": "one evaluation",
    "tests/callbacks/test_mlflow": "one store of MLflow",
    "tests/docs/test_site": "one site",
    "tests/test_distribution": "one wheel",
    "tests/flower/test_processes": "one SuperLink",
}
"""Beginnings of the names of tests that share what takes long to make: they run in one process."""
FOLDER_OF_RAY = "cluster"


class _Together(LoadScopeScheduling):  # type: ignore[misc]
    """Spreads tests over processes one by one, but for those that share something."""

    def _split_scope(self, nodeid: str) -> str:
        return next((TOGETHER[start] for start in TOGETHER if nodeid.startswith(start)), nodeid)


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: the tests of Ray and of Flower mostly wait."""
    return (os.cpu_count() or 1) + 1


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
def _processes_of_ray_may_start_slowly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a process of Ray's may take minutes to be ready; that is no failure."""
    if request.path.parent.name != FOLDER_OF_RAY:
        return
    from asyncfeded.cluster import actors, ray_transport, workers
    from scripted import LONGEST_SECONDS

    for module in (actors, ray_transport, workers):
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
