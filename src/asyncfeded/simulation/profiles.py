"""Sets of devices: those of the paper's three tasks, and a generic uneven one.

The figures of the paper's devices are from the rows that the authors published of every client's
rounds: three runs for each task, rule and P.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

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

BYTES_PER_SECOND = 6e6
"""The speed of the connection of every heterogeneous device, in either direction."""


@dataclass(frozen=True, slots=True)
class PaperMachine:
    """The authors' ten clients on one task; clients 0 to 9, seconds at K = 10.

    A round takes a fixed part and compute, as the authors' rows count it, and a short gap before
    the next row begins.
    """

    asynchronous: tuple[float, ...]
    """Mean rounds at P = 0 under the FedAsync rules, whose K is always 10; without the first."""
    synchronous: tuple[float, ...]
    """The same under FedAvg and FedProx. They hardly change with P."""
    fixed_seconds: float
    """The part of a round that does not shrink with K: mostly the transfer of the model.

    The authors draw the transfer from U(0.5, 1.5) times its mean. Their draws are known (see
    `authors_draws`), and the slope of a round's seconds over its draw is the mean: 0.0129 s on
    Synthetic-1-1, 0.288 s on FEMNIST, 0.19 s on Shakespeare. AsyncFedED's rounds of K = 1 have the
    same slopes, and on Synthetic-1-1 0.006 s more that do not shrink.
    """
    gap_seconds: float
    """The time between two rows of a client: the time that its rows do not cover, per row."""
    start_up_seconds: float
    """How much longer a client's first round takes, and in proportion its hang: the mean of all."""
    contention: tuple[float, float]
    """Floor f and rate r: the compute of asynchronous rounds takes f + (1 − f) / (1 + r · P).

    Clients share processors, which empty as more clients hang. Fitted to the clients' mean rounds
    at all ten P.
    """
    asynchronous_jitter: float
    """The standard deviation of a round's seconds, in units of its mean compute.

    The mean over clients and P; it includes the spread of the transfer.
    """
    synchronous_jitter: float

    def rounds(self, barrier: bool) -> tuple[float, ...]:
        """The rounds of a rule with or without a barrier."""
        return self.synchronous if barrier else self.asynchronous

    def jitter(self, barrier: bool) -> float:
        """The spread from round to round, for a rule with or without a barrier."""
        return self.synchronous_jitter if barrier else self.asynchronous_jitter

    def compute_factor(self, barrier: bool, suspension: float) -> float:
        """How long compute takes at this P, in units of that at P = 0."""
        floor, rate = self.contention
        return 1.0 if barrier else floor + (1 - floor) / (1 + rate * suspension)


_SHAKESPEARE = PaperMachine(
    asynchronous=(7.60, 11.40, 20.08, 15.21, 6.62, 24.51, 4.86, 6.35, 5.16, 8.79),
    synchronous=(6.81, 10.65, 15.25, 12.41, 6.23, 13.82, 4.83, 6.20, 5.23, 8.93),
    fixed_seconds=0.20,
    gap_seconds=0.165,
    start_up_seconds=11.3,
    contention=(0.55, 3.0),
    asynchronous_jitter=0.13,
    synchronous_jitter=0.02,
)

PAPER_MACHINES: dict[str, PaperMachine] = {
    "paper-synthetic": PaperMachine(
        asynchronous=(2.691, 0.296, 0.490, 4.956, 2.445, 0.082, 0.460, 0.139, 0.185, 0.297),
        synchronous=(1.479, 0.275, 0.438, 2.961, 1.701, 0.081, 0.417, 0.132, 0.180, 0.273),
        fixed_seconds=0.019,
        gap_seconds=0.005,
        start_up_seconds=6.2,
        contention=(0.6, 3.0),
        asynchronous_jitter=0.14,
        synchronous_jitter=0.04,
    ),
    "paper-femnist": PaperMachine(
        asynchronous=(0.788, 1.476, 0.725, 0.902, 0.869, 0.956, 0.773, 1.277, 0.837, 0.924),
        synchronous=(0.975, 1.382, 0.910, 1.076, 1.033, 1.129, 0.972, 1.322, 1.002, 1.093),
        fixed_seconds=0.288,
        gap_seconds=0.029,
        start_up_seconds=6.2,
        contention=(0.4, 2.5),
        asynchronous_jitter=0.34,
        synchronous_jitter=0.11,
    ),
    "paper-shakespeare": _SHAKESPEARE,
    # In some of the authors' runs clients 1, 5 and 9 took twice as long, and nobody else did.
    "paper-shakespeare-busy": replace(
        _SHAKESPEARE,
        asynchronous=(7.60, 22.0, 20.08, 15.21, 6.62, 47.2, 4.86, 6.35, 5.16, 16.7),
        synchronous=(6.81, 20.3, 15.25, 12.41, 6.23, 28.4, 4.83, 6.20, 5.23, 16.9),
    ),
}

PAPER_ROUND_SECONDS: dict[str, tuple[float, ...]] = {
    name: machine.asynchronous for name, machine in PAPER_MACHINES.items()
}
"""The asynchronous rounds, from which the clients of some tasks get their share of the data."""


def paper_devices(
    profile: str, client_ids: Sequence[str], barrier: bool = False, suspension: float = 0.0
) -> dict[str, Device]:
    """The ten devices of one of the paper's tasks, under a rule with or without a barrier, at P.

    The transfer of the model is in the fixed part of a round: `bytes_per_second` must be infinite.
    """
    machine = PAPER_MACHINES[profile]
    rounds = machine.rounds(barrier)
    if len(client_ids) != len(rounds):
        raise SettingError(
            f"devices {profile!r} describes {len(rounds)} clients; given {len(client_ids)}: "
            "use devices 'heterogeneous' for another number"
        )
    factor = machine.compute_factor(barrier, suspension)
    # The rounds are means; a log-normal jitter of median 1 has the mean exp(jitter² / 2).
    mean_jitter = exp(machine.jitter(barrier) ** 2 / 2)
    fixed = machine.fixed_seconds + machine.gap_seconds

    def device(seconds: float) -> Device:
        compute = factor * (seconds - machine.fixed_seconds)
        return Device(compute / USUAL_EPOCHS / mean_jitter, compute + fixed, fixed)

    return {
        client_id: device(seconds) for client_id, seconds in zip(client_ids, rounds, strict=True)
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
