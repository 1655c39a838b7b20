"""How clients train, as settings; what carries them out is loaded when a run begins."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

from asyncfeded.core.arguments import require_kind
from asyncfeded.core.errors import require

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

Unit = Literal["epochs", "steps"]
DecayPer = Literal["round", "epoch", "step"]
Kernel = Literal["torch", "compiled"]
CPU = "cpu"
OptimizerFactory = Callable[[list["Parameter"]], "Optimizer"]


@dataclass(frozen=True, slots=True)
class LocalTraining:
    """How clients train.

    `unit` says what K counts: passes over the client's data, or mini-batches. With
    `decay_per="round"` the learning rate of a client's n-th round is learning_rate · decayⁿ. With
    "epoch" it decays from pass to pass, with "step" from mini-batch to mini-batch, and starts again
    each round. Momentum starts from zero each round. A parameter that gets no gradient in a whole
    round is an error. Set `allow_unused` if a client's data need not reach every part of the model.

    `kernel="compiled"` trains a small module, a chain of fully connected layers, several times as
    fast as torch, and alike up to rounding. `optimizers` gives clients their own optimizers: by
    client, a function that makes an optimizer of the module's parameters.

    `device` is what torch computes on: "cpu", "cuda", "cuda:1" or "mps". The module and each
    client's data are moved there once. A GPU repeats the same bits only where torch does.
    """

    learning_rate: float = 0.01
    momentum: float = 0.5
    decay: float = 0.995
    decay_per: DecayPer = "round"
    batch_size: int = 32
    unit: Unit = "epochs"
    allow_unused: bool = False
    kernel: Kernel = "torch"
    optimizers: Mapping[str, OptimizerFactory] | None = None
    device: str = CPU

    def __post_init__(self) -> None:
        rate, momentum, decay = self.learning_rate, self.momentum, self.decay
        right = _is_number(rate) and isfinite(rate) and rate > 0
        require(right, "learning_rate", "a finite number above 0", rate)
        right = _is_number(momentum) and 0 <= momentum < 1
        require(right, "momentum", "a number of at least 0 and below 1", momentum)
        right = _is_number(decay) and 0 < decay <= 1
        require(right, "decay", "a number above 0 and at most 1", decay)
        right = self.decay_per in ("round", "epoch", "step")
        require(right, "decay_per", "'round', 'epoch' or 'step'", self.decay_per)
        right = _is_number(self.batch_size, Integral) and self.batch_size >= 1
        require(right, "batch_size", "a whole number of at least 1", self.batch_size)
        require(self.unit in ("epochs", "steps"), "unit", "'epochs' or 'steps'", self.unit)
        require(
            self.kernel in ("torch", "compiled"), "kernel", "'torch' or 'compiled'", self.kernel
        )
        _check_optimizers(self.optimizers, self.kernel)
        _check_device(self.device, self.kernel)

    @property
    def settings(self) -> dict[str, float | str | bool]:
        """What is a number or a text, by name."""
        others = ("kernel", "optimizers")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in others}

    def rate(self, round_number: int, epoch: int, step: int) -> float:
        """The learning rate of a step: learning_rate · decayⁿ.

        n is the number of the client's round, of the pass in the round, or of the step in the
        round, as `decay_per` says; all are counted from 0.
        """
        decays = {"round": round_number, "epoch": epoch, "step": step}
        return self.learning_rate * self.decay ** decays[self.decay_per]


def _check_device(value: object, kernel: Kernel) -> None:
    right = isinstance(value, str) and re.fullmatch(r"cpu|mps|cuda(:\d{1,3})?", value) is not None
    require(right, "device", "'cpu', 'cuda', 'cuda:N' or 'mps'", value)
    require(value == CPU or kernel == "torch", "device", "'cpu' for kernel 'compiled'", value)


def _check_optimizers(value: object, kernel: Kernel) -> None:
    if value is None:
        return
    right = isinstance(value, Mapping) and all(map(callable, value.values()))
    limit = "a mapping from clients to functions that make an optimizer"
    require_kind(right, "optimizers", limit, value)
    require(kernel == "torch", "optimizers", "none for kernel 'compiled'", value)


def _is_number(value: object, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
