"""Federating a torch module: results, and what must not change them."""

import multiprocessing
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import (
    ClientNames,
    LocalTraining,
    OnDemand,
    VersionHistory,
    Virtual,
    federate,
    guards,
    rules,
)
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.result import Result
from asyncfeded.runtime.events import Event, Joined, Replaced
from asyncfeded.runtime.membership import Membership
from asyncfeded.simulation.devices import Device, DeviceModel
from asyncfeded.store.log import EventLog


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


@cache
def usual() -> Result:
    """What several tests compare with."""
    return short()


def everything() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = (torch.cat(parts) for parts in zip(*datasets(), strict=True))
    return x, y


def test_a_module_learns_over_uneven_clients() -> None:
    result = short(seconds=10.0, test=everything())
    assert result.curve[0].metrics["accuracy"] < 0.75
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
        usual().log_sha256,
        short().log_sha256,
        short(world=Virtual(workers=2)).log_sha256,
        short(world=Virtual(workers=3)).log_sha256,
        short(world=Virtual(workers=np.int64(2))).log_sha256,  # type: ignore[arg-type]
        short(evaluate_every=0.5).log_sha256,
        short(history=VersionHistory("everything")).log_sha256,
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"world": Virtual(suspension=0.5)},
        {"rule": rules.asyncfeded(lam=4)},
        {"training": LocalTraining(learning_rate=0.11)},
        {"seconds": 2.5},
    ],
)
def test_what_decides_a_run_changes_its_digest(change: Mapping[str, Any]) -> None:
    assert short(**change).log_sha256 != usual().log_sha256


@pytest.mark.slow
def test_batch_norm_and_dropout_repeat_to_the_bit_too() -> None:
    def normed() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2)
        )

    results = [
        short(module=normed(), world=Virtual(workers=workers), seconds=8.0) for workers in (1, 2)
    ]
    assert results[0].log_sha256 == results[1].log_sha256
    assert results[0].max_accuracy is not None
    assert results[0].max_accuracy > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("name", rules.REGISTRY)
def test_every_rule_trains_a_module(name: str) -> None:
    # FADAS's own learning rates are for long runs.
    given = {"server_lr": 0.01} if name.startswith("fadas") else {}
    rule = rules.REGISTRY[name](**given)
    result = short(rule=rule, seconds=10.0, world=Virtual(suspension=0.1), test=everything())
    assert result.max_accuracy is not None
    assert result.max_accuracy > 0.85
    assert not result.refused


def test_fedprox_without_its_term_is_fedavg() -> None:
    prox, avg = short(rule=rules.fedprox(mu=0)), short(rule=rules.fedavg())
    assert [p.loss for p in prox.curve] == [p.loss for p in avg.curve]
    assert prox.versions == avg.versions > 3
    assert [p.loss for p in short(rule=rules.fedprox(mu=1)).curve] != [p.loss for p in avg.curve]


def test_clients_may_be_named_join_late_and_bring_their_own_optimizer() -> None:
    data = dict(zip("xyz", datasets(3), strict=True))
    result = short(
        data=data,
        world=Virtual(
            memberships=[Membership("x"), Membership("y", 1.0), Membership("z", 0.0, 2.0)]
        ),
        training=LocalTraining(
            optimizers={"x": lambda parameters: torch.optim.Adam(parameters, lr=0.01)}
        ),
        seconds=5.0,
    )
    assert result.updates > 5


def test_steps_can_be_the_unit_of_k() -> None:
    training = LocalTraining(learning_rate=0.1, unit="steps", batch_size=10)
    by_steps, by_epochs = short(training=training), usual()
    assert by_steps.updates > 2 * by_epochs.updates


def test_a_bound_on_staleness_discards_by_name() -> None:
    result = short(guards=[guards.bounded_staleness(0.5)])
    assert result.refused["too_stale"] > 0
    assert result.versions == result.updates + 1


def test_a_given_test_set_is_used_whole() -> None:
    x = torch.zeros(7, 5)
    result = short(test=(x, torch.zeros(7, dtype=torch.long)))
    assert all(round(accuracy * 7, 6) in (0, 7) for accuracy in result.metric("accuracy"))


def test_training_that_diverges_is_refused_and_does_not_reach_the_model() -> None:
    module = net()
    result = short(module=module, training=LocalTraining(learning_rate=1e30), seconds=1.0)
    assert result.refused["not_finite"] > 0
    assert all(torch.isfinite(parameter).all() for parameter in module.parameters())


def test_bad_arguments_are_named() -> None:
    with pytest.raises(SettingError, match="datasets must be at least one data set"):
        short(data=[])
    with pytest.raises(SettingError, match="'client-0' must have at least 2 examples"):
        short(data=[(np.zeros((1, 5), np.float32), np.zeros(1, np.int64))])
    with pytest.raises(SettingError, match="evaluate_every must be above 0; given 0"):
        short(evaluate_every=0)


def raising(event: Event, _: object) -> None:
    raise ValueError(event)


@pytest.mark.parametrize(
    "change",
    [{"seconds": -1.0}, {"callbacks": [EventLog("/nonexistent/x")]}, {"callbacks": [raising]}],
)
def test_a_run_that_cannot_start_leaves_no_process(change: dict[str, Any]) -> None:
    with pytest.raises((SettingError, FileError, ValueError)):
        short(world=Virtual(workers=2), **change)
    assert not multiprocessing.active_children()


def test_the_versions_of_a_result_are_those_of_the_end() -> None:
    # client-1 is slow; the round ends when it leaves at 0.8, and no update tells of it.
    devices = {"client-0": Device(0.08, 0.8), "client-1": Device(9.0, 90.0)}
    result = short(
        rule=rules.fedavg(),
        seconds=0.9,
        world=Virtual(
            DeviceModel(devices, jitter=0.0),
            memberships=[Membership("client-0"), Membership("client-1", 0.0, 0.85)],
        ),
    )
    assert (result.updates, result.versions) == (1, 2)


def test_a_result_is_shown_in_one_line() -> None:
    assert "max_accuracy=" in repr(usual())
    assert "\n" not in repr(usual())


class InTurn:
    """A selection of one's own: two at a time, in the order of their names."""

    def __init__(self, names: list[str]) -> None:
        self._line = deque(names)

    def first(self) -> list[str]:
        return [self._line.popleft(), self._line.popleft()]

    def after(self, client_id: str, seconds: float) -> str:
        self._line.append(client_id)
        return self._line.popleft()


def test_a_selection_of_one_s_own_says_who_is_at_work() -> None:
    events: list[Event] = []
    data = {name: (torch.randn(20, 4), torch.zeros(20).long()) for name in "abcde"}
    federate(
        nn.Linear(4, 2),
        data,
        world=Virtual(selection=InTurn(list(data))),
        seconds=2,
        callbacks=[lambda event, _: events.append(event)],
    )
    joined = [event.client_id for event in events if isinstance(event, Joined)]
    successors = [event.successor for event in events if isinstance(event, Replaced)]
    assert joined == ["a", "b"]
    assert successors[:3] == ["c", "d", "e"]


def test_data_made_on_demand_are_asked_for_when_they_are_needed() -> None:
    asked: set[str] = set()

    def make(name: str) -> tuple[torch.Tensor, torch.Tensor]:
        asked.add(name)
        draw = torch.Generator().manual_seed(ClientNames(10_000).index(name))
        x = torch.randn(30, 4, generator=draw)
        return x, (x[:, 0] > 0).long()

    def run(workers: int, **options: Any) -> Any:
        torch.manual_seed(0)
        clients = OnDemand(ClientNames(10_000), make)
        test = {"client-1": clients["client-1"]}
        asked.clear()
        return federate(
            nn.Linear(4, 2),
            clients,
            test=test,
            seconds=0.4,
            world=Virtual(at_work=5, workers=workers),
            **options,
        )

    result = run(workers=1)
    heard = {name for name, figures in result.clients.items() if figures.updates}
    assert 10 < len(heard) < 200
    assert heard <= asked
    assert len(asked) < 300
    assert run(workers=2).log_sha256 == result.log_sha256
    assert run(workers=1, seed=1).log_sha256 != result.log_sha256
    compiled = run(
        workers=2, training=LocalTraining(kernel="compiled"), history=VersionHistory("sketch", 4)
    )
    assert compiled.updates > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at_work": 9}, "at_work must be a whole number from 1 to 2, the clients; given 9"),
        (
            {"at_work": 1, "memberships": [Membership("a")]},
            "memberships must be none where",
        ),
        ({"at_work": 1, "selection": InTurn(["a", "b"])}, "at_work must be none where a selection"),
        ({"at_work": 1.0}, "at_work must be a whole number"),
    ],
)
def test_who_is_at_work_must_be_there(change: dict[str, Any], message: str) -> None:
    data = {name: (torch.randn(20, 4), torch.zeros(20).long()) for name in "ab"}
    with pytest.raises(SettingError, match=message):
        federate(nn.Linear(4, 2), data, seconds=1, world=Virtual(**change))


def test_who_is_tested_must_be_there() -> None:
    data = {name: (torch.randn(20, 4), torch.zeros(20).long()) for name in "ab"}
    with pytest.raises(SettingError, match="test must name clients of datasets; 'z' is none"):
        federate(nn.Linear(4, 2), data, seconds=1, test={"z": data["a"]})


def test_data_made_on_demand_need_a_test_set() -> None:
    clients = OnDemand(ClientNames(5), lambda _: (torch.zeros(2, 4), torch.zeros(2).long()))
    with pytest.raises(SettingError, match="test must be given where the clients"):
        federate(nn.Linear(4, 2), clients, seconds=1)
