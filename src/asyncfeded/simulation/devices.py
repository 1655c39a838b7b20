"""How long a round takes on a client's device.

    round    = download + hangs + compute + upload
    download = bytes / bytes_per_second · coefficient,   coefficient ~ N(1, σ²), truncated at 0
    compute  = epochs · seconds_per_epoch · jitter,      jitter log-normal with median 1
    hangs    : again and again with probability P, each U(0, 5.4) usual rounds of this client

The geometric form of the hangs and their length fit the round times in the authors' published
results for every P from 0.1 to 0.9 (mean extra time per round = P / (1 − P) · 2.7 rounds).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from typing import NamedTuple

import numpy as np

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.on_demand import OnDemand, names_of

MOST_NAMES = 20
"""How many names an error lists."""
MOST_SUSPENSION = 0.999
"""A client then hangs 1,000 times a round; nearer to 1, a round would hardly ever end."""


@dataclass(frozen=True, slots=True)
class Device:
    """One client's machine: its time for an epoch, and its usual round, which scales its hangs."""

    seconds_per_epoch: float
    usual_round_seconds: float

    def __post_init__(self) -> None:
        for name in ("seconds_per_epoch", "usual_round_seconds"):
            value = getattr(self, name)
            require(isfinite(value) and value > 0, name, "a finite number above 0", value)


class RoundTime(NamedTuple):
    """The parts of one round, in seconds."""

    download: float
    hangs: float
    compute: float
    upload: float

    @property
    def total(self) -> float:
        """From the task's sending to the update's arrival."""
        return self.download + self.hangs + self.compute + self.upload


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """The devices of all clients, with what they have in common.

    `suspension` is the paper's P (0 ≤ P ≤ 0.999). `jitter` is the standard deviation of the
    logarithm of the compute time, `transfer_spread` that of the transfer coefficient. An infinite
    `bytes_per_second` makes transfers free.
    """

    devices: Mapping[str, Device]
    seed: int = 0
    suspension: float = 0.0
    jitter: float = 0.1
    bytes_per_second: float = float("inf")
    transfer_spread: float = 0.1
    longest_hang_rounds: float = 5.4

    def __post_init__(self) -> None:
        within = 0 <= self.suspension <= MOST_SUSPENSION
        require(within, "suspension", f"from 0 to {MOST_SUSPENSION}", self.suspension)
        require(isfinite(self.jitter) and self.jitter >= 0, "jitter", "at least 0", self.jitter)
        require(self.bytes_per_second > 0, "bytes_per_second", "above 0", self.bytes_per_second)
        require(
            isfinite(self.transfer_spread) and self.transfer_spread >= 0,
            "transfer_spread",
            "at least 0",
            self.transfer_spread,
        )

    def for_steps(self, steps_per_epoch: Mapping[str, int]) -> "DeviceModel":
        """Return the same devices for a K that counts steps, of which an epoch has so many."""

        def device(name: str) -> Device:
            whole, steps = self.devices[name], steps_per_epoch[name]
            return Device(whole.seconds_per_epoch / steps, whole.usual_round_seconds / steps)

        return replace(self, devices=OnDemand(names_of(steps_per_epoch), device))

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int
    ) -> RoundTime:
        """Draw the time of one round; the same arguments always give the same time."""
        if client_id not in self.devices:
            raise SettingError(
                f"client {client_id!r} has no device; "
                f"known are {', '.join(islice(self.devices, MOST_NAMES))}"
            )
        device = self.devices[client_id]
        draw = randomness.passing_generator(self.seed, "device", client_id, round_number)
        download, upload = self._transfer_seconds(draw, num_bytes)
        compute = epochs * device.seconds_per_epoch * draw.lognormal(0.0, self.jitter)
        hangs = self._hang_seconds(draw, device)
        return RoundTime(download, hangs, compute, upload)

    def _transfer_seconds(self, draw: np.random.Generator, num_bytes: int) -> tuple[float, float]:
        mean = num_bytes / self.bytes_per_second
        return mean * self._coefficient(draw), mean * self._coefficient(draw)

    def _coefficient(self, draw: np.random.Generator) -> float:
        """A normal number of mean 1, truncated: drawn again until it is above 0."""
        while True:
            coefficient = draw.normal(1.0, self.transfer_spread)
            if coefficient > 0:
                return coefficient

    def _hang_seconds(self, draw: np.random.Generator, device: Device) -> float:
        longest = self.longest_hang_rounds * device.usual_round_seconds
        seconds = 0.0
        while draw.random() < self.suspension:
            seconds += draw.uniform(0.0, longest)
        return seconds
