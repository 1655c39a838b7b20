"""A Ray to run on: our own on this machine, or a cluster that is there already."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from asyncfeded.core.errors import ClusterError

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nobody is told of this run
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns of a change to come
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of calls that were given up on purpose
}


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
        yield
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        ray.init(
            address="local" if address is None else address,
            include_dashboard=None if address else False,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = "on this machine" if address is None else f"at {address!r}"
        what = " ".join(str(error).split())
        raise ClusterError(
            f"ray cannot be reached {where}: {what or type(error).__name__}"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()
