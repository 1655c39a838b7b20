"""The seam between a world and its clients' machines: how long a round takes."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from asyncfeded.runtime.transport import SUSPENDED


class RoundTime(NamedTuple):
    """The parts of one round, in seconds.

    A client hangs before it trains or, if its update is lost, after that. `compute` has the part
    that does not depend on the epochs in it. `reason` says why a lost update is lost.
    """

    download: float
    hangs: float
    compute: float
    upload: float
    lost: bool = False
    reason: str = SUSPENDED

    @property
    def total(self) -> float:
        """From the task's sending until its client is heard of again."""
        return self.download + self.hangs + self.compute + self.upload


class Devices(Protocol):
    """The clients' machines: a `DeviceModel`, or a class of your own.

    class Rush:  # everything takes twice as long in the second half of every minute
        def round_time(self, client_id, round_number, epochs, num_bytes, begins):
            return RoundTime(0.0, 0.0, epochs * (0.1 if begins % 60 < 30 else 0.2), 0.0)
    """

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int, begins: float
    ) -> RoundTime:
        """How long a client takes for the round that it begins at `begins`, in seconds of the run.

        The model has `num_bytes`. The same arguments must always give the same time.
        """


@runtime_checkable
class CountsEpochs(Devices, Protocol):
    """Devices whose times are per epoch; where K counts mini-batches, they must be converted."""

    def for_steps(self, steps_per_epoch: Mapping[str, int]) -> Devices:
        """The same devices for a K that counts mini-batches, given how many an epoch has."""


def for_unit(devices: Devices, steps_per_epoch: Mapping[str, int] | None) -> Devices:
    """The devices for what K counts: mini-batches if `steps_per_epoch` is given."""
    if steps_per_epoch is None or not isinstance(devices, CountsEpochs):
        return devices
    return devices.for_steps(steps_per_epoch)
