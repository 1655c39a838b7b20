"""`federate` on Ray, with a module and data of one's own."""

from typing import Any

import pytest
import torch

from asyncfeded import LocalTraining, Ray, RayWorkers, Virtual, federate, rules
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
            world=Ray(),
            training=LocalTraining(kernel=kernel),
            callbacks=[count],
        )
    assert loss() < before


def test_a_module_of_ones_own_class_trains_on_rays_workers_to_the_same_log() -> None:
    digests = set()
    for workers in (1, RayWorkers(1)):
        torch.manual_seed(0)
        world = Virtual(workers=workers)
        result = federate(Scaled(), two_clients(), seconds=3.0, world=world)
        digests.add(result.log_sha256)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Ray, {"patience": 0.5}, "patience must be at least 1; given 0.5"),
        (Ray, {"address": 6379}, "address must be HOST:PORT or auto; given 6379"),
        (Ray, {"devices": "slow"}, "devices must be a DeviceModel; given a str"),
        (Ray, {"memberships": ["a"]}, "memberships must be a list of Membership; given a list"),
        (RayWorkers, {"number": 0}, "number must be at least 1; given 0"),
        (RayWorkers, {"number": 2.5}, "number must be a whole number; given 2.5"),
    ],
)
def test_bad_arguments_are_named(kind: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        kind(**given)
