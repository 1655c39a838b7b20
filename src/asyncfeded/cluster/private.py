"""A Ray on this machine that nobody else can reach.

Whoever can talk to a Ray can run code as the user who started it. Three walls keep others out:

- every port listens on the loopback interface alone, so other machines cannot connect;
- every request must carry a random token, so other users of this machine are refused;
- socket files and logs are in a folder that only this user can enter.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from asyncfeded.core.errors import ClusterError

LOOPBACK = "127.0.0.1"
NO_PORT = "-1"
"""Where prometheus_client is installed, Ray's helpers would serve figures of their own, at fixed
ports that ask for no token. Given an impossible port, they log an error and serve nothing."""
NO_PORTS_FOR_FIGURES = {"AUTOSCALER_METRIC_PORT": NO_PORT, "DASHBOARD_METRIC_PORT": NO_PORT}
OLDEST_RAY = "2.55"
"""The oldest version that was tested; Ray has tokens since 2.52."""


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside this block, and put back what was there.

    Ray reads most of its variables once, when it is imported. Here it reads them again, at the
    beginning and at the end.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        _let_ray_read_its_variables()
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _let_ray_read_its_variables()


@contextmanager
def own_ray(**options: Any) -> Iterator[None]:
    """Start a Ray that only this process and those it starts can use; end it with the block."""
    import ray

    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with environment({**token, **NO_PORTS_FOR_FIGURES}):
        folder = _private_folder()  # stays if Ray does not start: its error names a log in there
        with _on_the_loopback_interface():
            ray.init(address="local", _temp_dir=str(folder / "ray"), **options)
        try:
            check_that_only_this_machine_reaches(ray.get_runtime_context().gcs_address)
            yield
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def _private_folder() -> Path:
    """A folder that only this user can enter.

    Ray lets everybody write into the folder that it is given, so that must be inside this one.
    Its path is short, because a socket's path may have about 100 characters at most.
    """
    place = os.environ.get("RAY_TMPDIR")
    if place is None and sys.platform == "darwin":
        place = "/tmp"  # noqa: S108 - mkdtemp makes a folder of a new name and mode 0700
    return Path(mkdtemp(prefix="asyncfeded-", dir=place))


@contextmanager
def _on_the_loopback_interface() -> Iterator[None]:
    """Let a Ray that is started inside this block listen on the loopback interface alone.

    On Linux, Ray replaces 127.0.0.1 by the address that other machines see, and then listens on
    every interface. RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 turns that off, but only when it is set
    before Ray is imported. So this sets the constant that the variable sets.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def check_that_only_this_machine_reaches(address: str) -> None:
    """Refuse a Ray that listens anywhere but on the loopback interface."""
    host, _, _ = address.rpartition(":")
    if host != LOOPBACK:
        raise ClusterError(
            f"ray must listen on {LOOPBACK} alone; it has chosen {host}: "
            f"let 'localhost' be {LOOPBACK} in /etc/hosts, or give the address of a Ray"
        )


def _let_ray_read_its_variables() -> None:
    import ray

    inner: Any = ray._raylet
    if not hasattr(inner, "AuthenticationTokenLoader"):
        raise ClusterError(
            f"ray must be {OLDEST_RAY} or newer, which can ask for a token; "
            f"installed is {ray.__version__}: pip install --upgrade 'asyncfeded[ray]'"
        )
    inner.Config.initialize("")
    inner.AuthenticationTokenLoader.instance().reset_cache()
