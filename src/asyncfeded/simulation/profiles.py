"""Sets of devices: those of the paper's three tasks, and a generic uneven one.

The paper's round times are the medians, in seconds, of a client's rounds of K = 10 epochs in the
authors' published results, clients 0 to 9, with the transfer of the model in them.
"""

from collections.abc import Mapping, Sequence

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError, require
from asyncfeded.on_demand import OnDemand, names_of
from asyncfeded.simulation.devices import Device

KEPT_DEVICES = 1024
USUAL_EPOCHS = 10
"""K of the rounds whose times are given, and of a client's usual round."""

LEAST_EXAMPLES = 32
"""An epoch on a heterogeneous device takes at least as long as one over this many examples.

A mini-batch of a few examples takes about as long as a full one of 32. Without this floor, a client
of one example would end its rounds at once and send most of all updates. It is below the smallest
client of the synthetic tasks, which has 45 examples to train on.
"""

PAPER_ROUND_SECONDS: dict[str, tuple[float, ...]] = {
    "paper-synthetic": (2.745, 0.302, 0.493, 5.010, 2.487, 0.083, 0.464, 0.140, 0.188, 0.303),
    "paper-femnist": (0.803, 1.477, 0.723, 0.908, 0.887, 0.960, 0.775, 1.285, 0.842, 0.918),
    "paper-shakespeare": (7.6, 11.5, 20.1, 15.3, 6.6, 24.7, 4.8, 6.3, 5.2, 8.8),
}

BYTES_PER_SECOND = 6e6
"""The speed of every client's connection, in either direction.

The paper does not give its transmission speed. The authors' AsyncFedED made 30,653 updates in
300 s on Synthetic-1-1 at P = 0 with the small clients at K = 1 throughout: that needs about
0.045 s of a round which do not shrink with K, for a model of 133 kB each way.
"""

PAPER_TRANSFER_SECONDS = 0.045
"""The part of the paper's round times that is not compute."""


def paper_devices(profile: str, client_ids: Sequence[str]) -> dict[str, Device]:
    """The ten devices of one of the paper's tasks.

    A K = 10 round takes the authors' time for a model of 133 kB, whose transfer is part of it;
    a larger model takes longer to transfer.
    """
    rounds = PAPER_ROUND_SECONDS[profile]
    if len(client_ids) != len(rounds):
        raise SettingError(
            f"devices {profile!r} describes {len(rounds)} clients; given {len(client_ids)}: "
            "use devices 'heterogeneous' for another number"
        )
    return {
        client_id: Device(
            seconds_per_epoch=(seconds - PAPER_TRANSFER_SECONDS) / USUAL_EPOCHS,
            usual_round_seconds=seconds,
        )
        for client_id, seconds in zip(client_ids, rounds, strict=True)
    }


def heterogeneous_devices(
    num_examples: Mapping[str, int],
    seed: int,
    seconds_per_example: float = 1 / 6000,
    speed_spread: float = 0.5,
) -> Mapping[str, Device]:
    """Devices of log-normal speed for any number of clients, each with its share of the data.

    An epoch takes `seconds_per_example` · max(examples, 32) / speed; ln(speed) ~ N(0, spread²).
    """
    require(seconds_per_example > 0, "seconds_per_example", "above 0", seconds_per_example)
    require(speed_spread >= 0, "speed_spread", "at least 0", speed_spread)

    def device(client_id: str) -> Device:
        speed = randomness.passing_generator(seed, "speed", client_id).lognormal(0.0, speed_spread)
        epoch = seconds_per_example * max(num_examples[client_id], LEAST_EXAMPLES) / speed
        return Device(epoch, USUAL_EPOCHS * epoch)

    return OnDemand(names_of(num_examples), device, keep=KEPT_DEVICES)
