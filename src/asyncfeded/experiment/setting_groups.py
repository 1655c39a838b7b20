"""The settings of a run: each declared once, with its type, range, default and help.

The groups are those of the help.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt
from pydantic_core import PydanticCustomError

from asyncfeded.availability.availability import WhenAway
from asyncfeded.availability.day_and_night import DAY_SECONDS
from asyncfeded.core.history import MOST_BUCKETS, SKETCH_BUCKETS, Keep
from asyncfeded.learning.local_training import CPU, DecayPer
from asyncfeded.runtime.deadlines import PATIENCE
from asyncfeded.simulation.devices import MOST_SUSPENSION
from asyncfeded.simulation.suspension import Hangs

Devices = Literal[
    "auto", "heterogeneous", "paper-synthetic", "paper-femnist", "paper-shakespeare", "real"
]

On = Literal["virtual", "ray"]
WorkersOn = Literal["here", "ray"]


def _pair(value: object) -> object:
    """Read two numbers from a text such as 16,32."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise PydanticCustomError("pair", "must be two numbers")
    return tuple(parts)


Widths = Annotated[tuple[PositiveInt, PositiveInt], BeforeValidator(_pair)]


class _Group(BaseModel):
    """Some of the settings; the docstring of a group is its heading in the help."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def heading(cls) -> str:
        """What stands above these settings in the help."""
        return str(cls.__doc__).rstrip(".")


class WhatIsRun(_Group):
    """What is run."""

    task: str = Field(
        "synthetic-1-1",
        description="what is learned: synthetic-α-β, femnist or shakespeare; femnist-standin or "
        "shakespeare-standin, which need no files; or FILE.py:factory of your own",
    )
    rule: str = Field(
        "asyncfeded",
        description="the aggregation rule, or FILE.py:factory of your own",
    )
    seconds: float = Field(300.0, gt=0, description="seconds to run, virtual or, on Ray, real")
    clients: int = Field(10, ge=1, le=100_000_000, description="how many clients take part")
    at_work: int | None = Field(
        None, ge=1, description="how many clients work at once, drawn by the seed [default: all]"
    )
    seed: int = Field(0, ge=0, description="the seed of everything but the data")
    widths: Widths | None = Field(None, description="the model's two widths, such as 16,32")


class TheData(_Group):
    """The data."""

    data_dir: Path | None = Field(
        None, description="where data sets lie [default: ASYNCFEDED_DATA_DIR or a user folder]"
    )
    data_seed: int = Field(
        0, ge=0, description="the seed of the data; 0: the paper's Synthetic-1-1"
    )
    min_examples: int | None = Field(
        None, ge=1, description="choose among clients with at least this many examples"
    )
    max_examples: int | None = Field(
        None, ge=2, description="use at most this many examples of a client"
    )
    split: Literal["auto", "position", "random"] = Field(
        "auto",
        description="which tenth of Shakespeare is for testing; random: any windows, as in the "
        "paper; position: the end, which leaks nothing; auto: random with the paper's devices, "
        "else position",
    )
    test_clients: int = Field(
        1000, ge=1, description="evaluate on at most this many clients, drawn at random"
    )


class TheDevices(_Group):
    """The clients' devices."""

    suspension: float = Field(
        0.1,
        ge=0,
        le=MOST_SUSPENSION,
        description="P, the probability that a client's round is suspended",
    )
    hangs: Hangs = Field(
        "lose",
        description="what a hang does: lose the update of the round before it, or delay the next",
    )
    hang_draws: Literal["seed", "authors"] = Field(
        "seed",
        description="which draws decide the lost rounds: the seed's, or the authors' own for this "
        "P, which need the paper's devices",
    )
    hangs_from: Path | None = Field(
        None,
        description="a CSV file of the rounds that are lost (client, round, hang), in place of P",
    )
    devices: Devices = Field(
        "auto",
        description="how fast the clients are; auto: as in the paper if it says so, else "
        "heterogeneous; real: as fast as the machine, on Ray",
    )
    start_up: float = Field(
        0.0,
        ge=0,
        description="seconds that a client's first round takes longer; 6 to 11 in the paper",
    )
    availability: Path | None = Field(
        None,
        description="a CSV file (client, start, end) or a public JSON trace of when clients are "
        "there [default: always]",
    )
    when_away: WhenAway = Field(
        "later",
        description="what becomes of the round of a client that goes away: it ends later, or its "
        "update is lost",
    )
    repeat_every: float = Field(
        DAY_SECONDS,
        ge=0,
        description="after how many seconds the times of the CSV file begin again; 0: never",
    )
    join: tuple[str, ...] = Field((), description="who joins late, as CLIENT@SECONDS")
    leave: tuple[str, ...] = Field((), description="who leaves for good, as CLIENT@SECONDS")


class TheTraining(_Group):
    """The clients' training."""

    learning_rate: float | None = Field(None, gt=0, description="the clients' learning rate")
    momentum: float | None = Field(None, ge=0, lt=1, description="the clients' momentum")
    decay: float | None = Field(
        None, gt=0, le=1, description="what the learning rate is multiplied by"
    )
    decay_per: DecayPer | None = Field(None, description="how often the learning rate decays")
    batch_size: int | None = Field(None, ge=1, description="examples per mini-batch")
    unit: Literal["epochs", "steps"] = Field("epochs", description="what K counts")


class TheServer(_Group):
    """The server."""

    max_staleness: float | None = Field(
        None, gt=0, description="Γ: discard updates that are staler"
    )
    history: Keep = Field(
        "leased",
        description="versions kept: those in use, all as in the paper, or a sketch of those in use",
    )
    sketch_buckets: int = Field(
        SKETCH_BUCKETS,
        ge=1,
        le=MOST_BUCKETS,
        description="how many numbers a sketch has; more are more exact",
    )


class TheCarryingOut(_Group):
    """How it is carried out."""

    on: On = Field(
        "virtual", description="the clock: virtual, or ray: real time, each client a process"
    )
    workers: int = Field(
        1, ge=1, le=1024, description="how many clients are trained at once; changes no result"
    )
    workers_on: WorkersOn = Field("here", description="where workers are: here, or on Ray")
    ray_address: str | None = Field(
        None, description="a Ray cluster to join [default: one of our own on this machine]"
    )
    patience: float = Field(
        PATIENCE,
        ge=1,
        description="on Ray, how many times its usual time a client may take; then it is started "
        "again",
    )
    evaluate_every: float = Field(2.0, gt=0, description="seconds between evaluations")
    kernel: Literal["auto", "torch", "compiled"] = Field(
        "auto", description="what trains; auto: compiled for fully connected layers, else torch"
    )
    device: str = Field(
        CPU, description="what torch trains and measures on: cpu, cuda, cuda:1 or mps"
    )
    checkpoint_every: float | None = Field(
        None,
        ge=0,
        description="seconds of the run from one save to the next, for asyncfeded resume; 0: never "
        "[default: about a minute of real time]",
    )
    out: Path | None = Field(None, description="folder for the results")


GROUPS = (WhatIsRun, TheData, TheDevices, TheTraining, TheServer, TheCarryingOut)
