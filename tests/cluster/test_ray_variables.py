"""The variables that Ray is started with work, though Ray was imported before they were set."""

import os
from pathlib import Path

import pytest
import ray

from asyncfeded.cluster.session import ENVIRONMENT
from listening import command_line, descendants

pytestmark = [
    pytest.mark.usefixtures("ray_here"),  # which imports Ray, and then starts it
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads Linux's /proc"),
]


def variables_of(process: int) -> dict[str, str]:
    """The environment that a process was started with."""
    pairs = Path(f"/proc/{process}/environ").read_text().split("\0")
    return dict(pair.partition("=")[::2] for pair in pairs if pair)


def test_the_raylet_which_frees_objects_was_started_with_them() -> None:
    names = {p: Path(command_line(p).partition("\0")[0]).name for p in descendants(os.getpid())}
    (raylet,) = (process for process, name in names.items() if name == "raylet")
    assert ENVIRONMENT.items() <= variables_of(raylet).items()


def test_rays_processes_have_them() -> None:
    names = tuple(ENVIRONMENT)
    found = ray.get(ray.remote(lambda: {name: os.environ.get(name) for name in names}).remote())
    assert found == ENVIRONMENT
