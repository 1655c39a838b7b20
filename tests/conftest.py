"""No test reads or writes the user's own data and caches; and what several tests look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import toy
from command_line import asyncfeded

SMALL_EVALUATION = (
    *("paper", "--task", "synthetic-1-1", "--seconds", "6", "--seeds", "2", "--table", "1"),
    *(word for number in range(1, 6) for word in ("--figure", str(number))),
    *("--suspension", "0", "--suspension", "0.5", "--workers", "2"),
)

SHARING = {"cluster": "one Ray", "experiment/paper": "one evaluation"}
"""Folders whose tests share something that takes long to make, and so run in one process."""


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests together that share something, where several processes run the tests."""
    here = Path(__file__).parent
    for item in items:
        shared = SHARING.get(item.path.parent.relative_to(here).as_posix())
        if shared is not None:
            item.add_marker(pytest.mark.xdist_group(shared))


@pytest.fixture(autouse=True)
def _folders_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYNCFEDED_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ASYNCFEDED_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture(scope="session")
def small_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures 1 to 5 and Table 1 of the paper, from short runs."""
    folder = tmp_path_factory.mktemp("evaluation") / "paper"
    done = asyncfeded(*SMALL_EVALUATION, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    """One Ray for all tests that need one: to start it takes seconds."""
    import ray.cloudpickle

    from asyncfeded.cluster.session import ray_session

    with ray_session():
        # Ray's processes do not find the modules of tests: what is in them travels whole.
        ray.cloudpickle.register_pickle_by_value(toy)
        yield
