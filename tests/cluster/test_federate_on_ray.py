"""`federate` on Ray, with a module and data of one's own."""

from typing import Any

import pytest
import torch

from asyncfeded import federate, rules
from asyncfeded.core.errors import SettingError
from asyncfeded.runtime.events import Event, Received

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


class EnoughError(Exception):
    """Ends a run that has shown what a test asks."""


@pytest.mark.parametrize("kernel", ["compiled", "torch"])
def test_a_module_is_trained_in_real_time(kernel: Any) -> None:
    torch.manual_seed(0)
    module, clients, updates = torch.nn.Linear(4, 2), two_clients(), []

    def count(event: Event, _: object) -> None:
        if isinstance(event, Received):
            updates.append(event.receipt.client_id)
        if set(updates) == {"client-0", "client-1"} and len(updates) >= 4:
            raise EnoughError

    @torch.no_grad()
    def loss() -> float:
        return sum(torch.nn.functional.cross_entropy(module(x), y).item() for x, y in clients)

    before = loss()
    rule = rules.asyncfeded(initial_epochs=2)
    with pytest.raises(EnoughError):
        federate(
            module,
            clients,
            rule=rule,
            seconds=600.0,  # a last resort
            on="ray",
            kernel=kernel,
            callbacks=[count],
        )
    assert loss() < before


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
