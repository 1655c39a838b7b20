"""The clients' machines, as a world asks for them: how long a round takes."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable


class RoundTime(NamedTuple):
    """The parts of one round, in seconds.

    A client hangs before it trains or, if its update is lost, after that. `compute` has the part
    that does not depend on the epochs in it.
    """

    download: float
    hangs: float
    compute: float
    upload: float
    lost: bool = False

    @property
    def total(self) -> float:
        """From the task's sending until its client is heard of again."""
        return self.download + self.hangs + self.compute + self.upload


class Devices(Protocol):
    """Says how long rounds take: a `DeviceModel`, or a class of your own.

    `epochs` is K: passes over the client's data, or mini-batches where K counts these.
    """

    def round_time(
        self, client_id: str, round_number: int, epochs: int, num_bytes: int
    ) -> RoundTime:
        """Draw the time of one round; the same arguments always give the same time."""


@runtime_checkable
class CountsEpochs(Devices, Protocol):
    """Devices whose times are per epoch; where K counts mini-batches, they must be converted."""

    def for_steps(self, steps_per_epoch: Mapping[str, int]) -> Devices:
        """The same devices for a K that counts mini-batches, of which an epoch has so many."""


def for_unit(devices: Devices, steps_per_epoch: Mapping[str, int] | None) -> Devices:
    """The devices for what K counts: mini-batches if `steps_per_epoch` is given."""
    if steps_per_epoch is None or not isinstance(devices, CountsEpochs):
        return devices
    return devices.for_steps(steps_per_epoch)
