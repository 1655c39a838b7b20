"""How long a round takes on a client's device.

    round    = download + fixed + compute + upload, and a client's first round also its start-up
    download = bytes / bytes_per_second · coefficient,   coefficient ~ N(1, σ²), truncated at 0
    compute  = epochs · seconds_per_epoch · jitter,      jitter log-normal with median 1

With probability P a round is suspended: its update is lost or late. See `suspension`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from typing import get_args

import numpy as np

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.on_demand import OnDemand, names_of
from asyncfeded.runtime.devices import RoundTime
from asyncfeded.simulation.suspension import (
    Hangs,
    RecordedHangs,
    drawn_delay,
    drawn_loss,
    recorded_loss,
)

MOST_NAMES = 20
"""How many names an error lists."""
MOST_SUSPENSION = 0.999
"""A client then hangs 1,000 times a round; nearer to 1, a round would hardly ever end."""


@dataclass(frozen=True, slots=True)
class Device:
    """One client's machine.

    `seconds_per_epoch` is its time for an epoch, `fixed_seconds` what a round takes beyond its
    epochs. `usual_round_seconds` scales the hangs of late rounds.
    """

    seconds_per_epoch: float
    usual_round_seconds: float
    fixed_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("seconds_per_epoch", "usual_round_seconds"):
            value = getattr(self, name)
            require(isfinite(value) and value > 0, name, "a finite number above 0", value)
        fixed = self.fixed_seconds
        require(isfinite(fixed) and fixed >= 0, "fixed_seconds", "at least 0", fixed)


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """The devices of all clients, with what they have in common.

    `suspension` is the paper's P (0 ≤ P ≤ 0.999). `jitter` is the standard deviation of the
    logarithm of the compute time, `transfer_spread` that of the transfer coefficient. An infinite
    `bytes_per_second` makes transfers free. `start_up_seconds` are added to a
    client's first round, while its process starts. `hangs` says whether a hang loses a round or
    delays it. With `recorded`, the record says which rounds are lost, in place of a draw.
    """

    devices: Mapping[str, Device]
    seed: int = 0
    suspension: float = 0.0
    jitter: float = 0.1
    bytes_per_second: float = float("inf")
    transfer_spread: float = 0.1
    start_up_seconds: float = 0.0
    hangs: Hangs = "lose"
    recorded: RecordedHangs | None = None

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
        start_up = self.start_up_seconds
        require(isfinite(start_up) and start_up >= 0, "start_up_seconds", "at least 0", start_up)
        laws = get_args(Hangs)
        require(self.hangs in laws, "hangs", "'lose' or 'delay'", self.hangs)
        by_record = self.recorded is not None
        require(
            not (by_record and self.suspension),
            "suspension",
            "0 with recorded hangs",
            self.suspension,
        )
        require(
            not (by_record and self.hangs == "delay"),
            "hangs",
            "'lose' with recorded hangs",
            self.hangs,
        )

    def for_steps(self, steps_per_epoch: Mapping[str, int]) -> "DeviceModel":
        """Return the same devices for a K that counts steps, given how many an epoch has."""

        def device(name: str) -> Device:
            whole, steps = self.devices[name], steps_per_epoch[name]
            return Device(
                whole.seconds_per_epoch / steps,
                whole.usual_round_seconds / steps,
                whole.fixed_seconds,
            )

        return replace(self, devices=OnDemand(names_of(steps_per_epoch), device))

    def round_time(
        self,
        client_id: str,
        round_number: int,
        epochs: int,
        num_bytes: int,
        begins: float = 0.0,  # noqa: ARG002 - these machines are as fast at any time
    ) -> RoundTime:
        """Draw the time of one round; the same arguments always give the same time."""
        try:
            device = self.devices[client_id]
        except KeyError:
            raise SettingError(
                f"client {client_id!r} has no device; "
                f"known are {', '.join(islice(self.devices, MOST_NAMES))}"
            ) from None
        draw = randomness.passing_generator(self.seed, "device", client_id, round_number)
        download, upload = self._transfer_seconds(draw, num_bytes)
        compute = epochs * device.seconds_per_epoch * draw.lognormal(0.0, self.jitter)
        compute += device.fixed_seconds
        if round_number == 0:
            compute += self.start_up_seconds
        if self.hangs == "delay":
            delay = drawn_delay(draw, self.suspension) * device.usual_round_seconds
            return RoundTime(download, delay, compute, upload)
        if self.recorded is None:
            loss = drawn_loss(draw, self.suspension)
        else:
            loss = recorded_loss(self.recorded, client_id, round_number)
        if loss is None:
            return RoundTime(download, 0.0, compute, upload)
        hang = loss.hang_rounds * (download + compute + upload)
        return RoundTime(download, hang, compute, upload, lost=True)

    def _transfer_seconds(self, draw: np.random.Generator, num_bytes: int) -> tuple[float, float]:
        mean = num_bytes / self.bytes_per_second
        return mean * self._coefficient(draw), mean * self._coefficient(draw)

    def _coefficient(self, draw: np.random.Generator) -> float:
        """A normal number of mean 1, truncated: drawn again until it is above 0."""
        while True:
            coefficient = draw.normal(1.0, self.transfer_spread)
            if coefficient > 0:
                return coefficient
