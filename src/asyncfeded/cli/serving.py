"""`--serve`: what a run measures, over HTTP, while it goes on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from asyncfeded.core.errors import require
from asyncfeded.runtime.control import Callback, Run
from asyncfeded.runtime.events import Event, Resumed, Started

if TYPE_CHECKING:
    from asyncfeded.callbacks.prometheus import Prometheus

serve_option = click.option(
    "--serve",
    metavar="[HOST:]PORT",
    help="serve the run's figures to Prometheus at this address while it goes on, such as 9464; "
    "port 0: any free one [default host: 127.0.0.1, for this machine only]",
)


def monitor_of(serve: str | None) -> "list[Prometheus]":
    """What serves a run at this address; what is wrong with it is found here."""
    if serve is None:
        return []
    host, _, port = serve.rpartition(":")
    digits = port.isascii() and port.isdecimal() and len(port) <= 5
    require(digits and serve[:1] != ":", "serve", "[HOST:]PORT, such as 9464", serve)
    from asyncfeded.callbacks.prometheus import LOOPBACK, Prometheus

    return [Prometheus(int(port), host.removeprefix("[").removesuffix("]") or LOOPBACK)]


def served(monitors: "list[Prometheus]", say: Callable[[str], None]) -> list[Callback]:
    """What serves a run, and says where once the run begins."""

    def announce(event: Event, _: Run) -> None:
        if isinstance(event, Started | Resumed):
            for monitor in monitors:
                say(f"metrics: {monitor.url}")

    return [*monitors, announce] if monitors else []
