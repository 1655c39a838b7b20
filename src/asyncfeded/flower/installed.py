"""Says what to install where Flower is missing."""

from importlib.util import find_spec

from asyncfeded.core.errors import ClusterError

if find_spec("flwr") is None:
    raise ClusterError(
        "flwr is not installed, which a federation needs: pip install 'asyncfeded[flower]'"
    )
