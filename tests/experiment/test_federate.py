"""Federating a torch module: results, and what must not change them."""

import multiprocessing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import LocalTraining, federate, rules
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.experiment.result import Result
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.simulation.transport import Membership


def datasets(clients: int = 4, size: int = 60) -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(1)
    inputs = [torch.randn(size, 5, generator=draw) + index / 4 for index in range(clients)]
    return [(x, (x[:, 0] > x[:, 1]).long()) for x in inputs]


def net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))


def short(**changes: Any) -> Result:
    data: Any = changes.pop("data", datasets())
    return federate(
        changes.pop("module", net()),
        data,
        **{"seconds": 3.0, "training": LocalTraining(learning_rate=0.1), **changes},
    )


def everything() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = (torch.cat(parts) for parts in zip(*datasets(), strict=True))
    return x, y


def test_a_module_learns_over_uneven_clients() -> None:
    result = short(seconds=10.0, test=everything())
    assert result.curve[0].accuracy < 0.75
    assert result.max_accuracy is not None
    assert result.max_accuracy > 0.9
    assert result.updates == result.versions - 1 > 20
    assert result.t90_seconds is not None
    assert 0 < result.t90_seconds <= 10


def test_the_module_is_left_as_trained() -> None:
    module = net()
    before = module[0].weight.clone()  # type: ignore[index]
    x, y = everything()
    result = short(module=module, test=(x, y))
    assert not torch.equal(module[0].weight, before)  # type: ignore[index]
    with torch.no_grad():
        accuracy = (module(x).argmax(dim=1) == y).double().mean().item()
    assert accuracy == pytest.approx(result.curve[-1].accuracy)


def test_a_run_repeats_to_the_bit_for_any_workers_and_whatever_only_looks() -> None:
    digests = {
        short().log_sha256,
        short().log_sha256,
        short(workers=2).log_sha256,
        short(workers=3).log_sha256,
        short(evaluate_every=0.5).log_sha256,
        short(history="everything").log_sha256,
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"suspension": 0.5},
        {"rule": rules.asyncfeded(lam=4)},
        {"training": LocalTraining(learning_rate=0.11)},
        {"seconds": 2.5},
    ],
)
def test_what_decides_a_run_changes_its_digest(change: Mapping[str, Any]) -> None:
    assert short(**change).log_sha256 != short().log_sha256


def test_batch_norm_and_dropout_repeat_to_the_bit_too() -> None:
    def normed() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2)
        )

    results = [short(module=normed(), workers=workers, seconds=8.0) for workers in (1, 2)]
    assert results[0].log_sha256 == results[1].log_sha256
    assert results[0].max_accuracy is not None
    assert results[0].max_accuracy > 0.85


@pytest.mark.parametrize("name", rules.REGISTRY)
def test_every_rule_trains_a_module(name: str) -> None:
    result = short(rule=rules.REGISTRY[name](), seconds=10.0, suspension=0.1, test=everything())
    assert result.max_accuracy is not None
    assert result.max_accuracy > 0.85
    assert not result.rejected


def test_fedprox_without_its_term_is_fedavg() -> None:
    prox, avg = short(rule=rules.fedprox(mu=0)), short(rule=rules.fedavg())
    assert [p.loss for p in prox.curve] == [p.loss for p in avg.curve]
    assert prox.versions == avg.versions > 3
    assert [p.loss for p in short(rule=rules.fedprox(mu=1)).curve] != [p.loss for p in avg.curve]


def test_clients_may_be_named_join_late_and_bring_their_own_optimizer() -> None:
    data = dict(zip("xyz", datasets(3), strict=True))
    result = short(
        data=data,
        memberships=[Membership("x"), Membership("y", 1.0), Membership("z", 0.0, 2.0)],
        optimizers={"x": lambda parameters: torch.optim.Adam(parameters, lr=0.01)},
        seconds=5.0,
    )
    assert result.updates > 5


def test_steps_can_be_the_unit_of_k() -> None:
    training = LocalTraining(learning_rate=0.1, unit="steps", batch_size=10)
    by_steps, by_epochs = short(training=training), short()
    assert by_steps.updates > 2 * by_epochs.updates


def test_a_bound_on_staleness_discards_by_name() -> None:
    result = short(max_staleness=0.5)
    assert result.rejected["too_stale"] > 0
    assert result.versions == result.updates + 1


def test_a_given_test_set_is_used_whole() -> None:
    x = torch.zeros(7, 5)
    result = short(test=(x, torch.zeros(7, dtype=torch.long)))
    assert all(round(point.accuracy * 7, 6) in (0, 7) for point in result.curve)


def test_training_that_diverges_is_refused_and_does_not_reach_the_model() -> None:
    module = net()
    result = short(module=module, training=LocalTraining(learning_rate=1e30), seconds=1.0)
    assert result.rejected["not_finite"] > 0
    assert all(torch.isfinite(parameter).all() for parameter in module.parameters())


def test_bad_arguments_are_named() -> None:
    with pytest.raises(SettingError, match="datasets must be at least one data set"):
        short(data=[])
    with pytest.raises(SettingError, match="'client-0' must have at least 2 examples"):
        short(data=[(np.zeros((1, 5), np.float32), np.zeros(1, np.int64))])
    with pytest.raises(SettingError, match="evaluate_every must be above 0; given 0"):
        short(evaluate_every=0)


@pytest.mark.parametrize(
    "change", [{"seconds": -1.0}, {"log": Path("/nonexistent/x")}, {"on_event": [].index}]
)
def test_a_run_that_cannot_start_leaves_no_process(change: dict[str, Any]) -> None:
    with pytest.raises((SettingError, FileError, ValueError)):
        short(workers=2, **change)
    assert not multiprocessing.active_children()


def test_the_versions_of_a_result_are_those_of_the_end() -> None:
    # client-1 is slow; the round ends when it leaves at 0.8, and no update tells of it.
    devices = {"client-0": Device(0.08, 0.8), "client-1": Device(9.0, 90.0)}
    result = short(
        rule=rules.fedavg(),
        seconds=0.9,
        memberships=[Membership("client-0"), Membership("client-1", 0.0, 0.85)],
        devices=DeviceModel(devices, jitter=0.0),
    )
    assert (result.updates, result.versions) == (1, 2)


def test_a_result_is_shown_in_one_line() -> None:
    assert "max_accuracy=" in repr(short())
    assert "\n" not in repr(short())
