"""A server on Ray whose process is killed goes on from its folder; more in `make soak-kills`."""

from pathlib import Path

import pytest
import ray

from kills import on_ray
from kills.histories import Killed


@pytest.mark.usefixtures("ray_here")
def test_a_server_that_is_killed_loses_nothing_that_a_client_has_heard_of(tmp_path: Path) -> None:
    killed = Killed()
    address = ray.get_runtime_context().gcs_address
    on_ray.history(tmp_path, address, 3, killed, most_kills=1)
    assert killed.kills == 1
