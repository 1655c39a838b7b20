"""Federated learning on a virtual clock."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.simulation.authors_draws import FIRST_SEED, authors_hangs
    from asyncfeded.simulation.devices import DeviceModel
    from asyncfeded.simulation.profiles import PAPER_MACHINES, paper_devices
    from asyncfeded.simulation.virtual_transport import VirtualTransport
    from asyncfeded.simulation.workers import InProcess

__all__ = [
    "FIRST_SEED",
    "PAPER_MACHINES",
    "DeviceModel",
    "InProcess",
    "VirtualTransport",
    "authors_hangs",
    "paper_devices",
]

__getattr__ = later(
    __name__,
    {
        "DeviceModel": "asyncfeded.simulation.devices",
        "FIRST_SEED": "asyncfeded.simulation.authors_draws",
        "InProcess": "asyncfeded.simulation.workers",
        "PAPER_MACHINES": "asyncfeded.simulation.profiles",
        "VirtualTransport": "asyncfeded.simulation.virtual_transport",
        "authors_hangs": "asyncfeded.simulation.authors_draws",
        "paper_devices": "asyncfeded.simulation.profiles",
    },
)
