"""A Ray to run on: our own on this machine, or a cluster that is there already."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from asyncfeded.cluster.address import check_address
from asyncfeded.cluster.private import environment, own_ray
from asyncfeded.core.errors import ClusterError

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nobody is told of this run
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns of a change to come
    "RAY_free_objects_batch_size": "1",  # what was used is freed at once, not once a second
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of calls that were given up on purpose
}

CONNECT_SECONDS = 5.0
HINT = "is it a Ray of this version, with this RAY_AUTH_TOKEN?"

_address: str | None = None
"""The cluster that this process has joined here."""


@contextmanager
def ray_session(address: str | None = None) -> Iterator[None]:
    """Be connected to a Ray inside this block.

    Without an address, a Ray that the caller has begun is used, or one is started on this machine
    and ended with the block. A cluster at `address` is left as it was found: the processes of this
    run end with it.
    """
    try:
        import ray
    except ImportError:
        raise ClusterError(
            "ray is not installed, which running on Ray needs: pip install 'asyncfeded[ray]'"
        ) from None
    if ray.is_initialized():
        if address not in (None, _address):
            raise ClusterError(
                f"address must be left out where a Ray is in use already; given {address!r}"
            )
        yield
        return
    if address is not None:
        _check_that_somebody_listens(address)
    variables = {name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()}
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    with environment(variables), ExitStack() as stack:
        try:
            if address is None:
                stack.enter_context(own_ray(include_dashboard=False, **quiet))
            else:
                stack.enter_context(_joined_ray(address, **quiet))
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            where = "on this machine" if address is None else f"at {address!r}"
            what = " ".join(str(error).split()) or type(error).__name__
            hint = "" if address is None else f"; {HINT}"
            raise ClusterError(f"ray cannot be reached {where}: {what}{hint}") from None
        with _ended_by_sigterm():
            yield


@contextmanager
def _joined_ray(address: str, **options: Any) -> Iterator[None]:
    """Be connected to the cluster at this address inside this block."""
    import ray

    global _address
    ray.init(address=address, **options)
    _address = address
    try:
        yield
    finally:
        _address = None
        ray.shutdown()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this block as Ctrl-C does, in place of Ray's way, which saves nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_that_somebody_listens(address: str) -> None:
    """Fail at once if nobody listens: Ray itself would try for many minutes."""
    check_address("address", address)
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"ray cannot be reached at {address!r}: {error.strerror or error}; "
            "is the head node up (ray start --head), and its port open to this machine?"
        ) from None
