"""`federate` on Ray, with a module and data of one's own."""

from typing import Any

import pytest
import torch

from asyncfeded import federate, rules
from asyncfeded.core.errors import SettingError

pytestmark = pytest.mark.usefixtures("ray_here")


class Scaled(torch.nn.Module):
    """A module that is no chain of layers, so that torch trains it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.linear(x) * self.scale
        return scores


def two_clients() -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(40, 4, generator=draw) for _ in range(2)]
    return [(x, (x[:, 0] > 0).long()) for x in inputs]


@pytest.mark.parametrize(
    ("module", "kernel"),
    [(torch.nn.Linear(4, 2), "compiled"), (torch.nn.Linear(4, 2), "torch")],
)
def test_a_module_is_trained_in_real_time(module: torch.nn.Module, kernel: Any) -> None:
    before = {name: value.clone() for name, value in module.state_dict().items()}
    result = federate(
        module,
        two_clients(),
        rule=rules.asyncfeded(initial_epochs=2),
        seconds=2.0,
        evaluate_every=0.5,
        on="ray",
        kernel=kernel,
    )
    assert result.updates > 2
    assert result.kernel == kernel
    assert [point.seconds for point in result.curve] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert result.curve[-1].loss < result.curve[0].loss
    assert any(not torch.equal(before[name], new) for name, new in module.state_dict().items())


def test_a_module_of_ones_own_class_trains_on_rays_workers_to_the_same_log() -> None:
    digests = set()
    for where in ("here", "ray"):
        torch.manual_seed(0)
        result = federate(Scaled(), two_clients(), seconds=3.0, workers_on=where)
        digests.add(result.log_sha256)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": "ray", "at_work": 1}, "at_work must be none on ray; given 1"),
        ({"on": "moon"}, "on must be 'virtual' or 'ray'; given 'moon'"),
        ({"workers_on": "moon"}, "workers_on must be 'here' or 'ray'; given 'moon'"),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        federate(torch.nn.Linear(4, 2), two_clients(), seconds=1.0, **arguments)
