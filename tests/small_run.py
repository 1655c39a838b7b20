"""A run of three small clients that is over in a moment."""

from typing import Any

import torch
from torch import nn

from asyncfeded import federate
from asyncfeded.result import Result


def small_run(*callbacks: Any, **given: Any) -> Result:
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(40, 5, generator=draw) for _ in range(3)]
    torch.manual_seed(0)
    data = [(x, (x[:, 0] > 0).long()) for x in inputs]
    given = {"seconds": 4.0, "evaluate_every": 0.5, **given}
    return federate(nn.Linear(5, 2), data, callbacks=callbacks, **given)
