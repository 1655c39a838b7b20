"""A run that is ended anywhere and goes on gives what it gives without the interruption."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import (
    Availability,
    Checkpoint,
    ClientCurves,
    EventLog,
    KeepBest,
    LocalTraining,
    Membership,
    Result,
    StateError,
    StopAfter,
    VersionHistory,
    Virtual,
    federate,
    federation,
    guards,
    rules,
)
from asyncfeded.callbacks import Callback, Run
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.runtime import Event

SECONDS = 4.0
CLIENTS = 6


class PowerCut(BaseException):
    """Ends a run as nothing of it expects."""


def cut_after(events: int) -> Callback:
    """A callback that ends the process's work after so many events."""
    heard = 0

    def listen(_: Event, __: Run) -> None:
        nonlocal heard
        heard += 1
        if heard == events:
            raise PowerCut

    return listen


def make_data() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(5)
    found = {}
    for client in range(CLIENTS):
        x = torch.randn(30 + 10 * client, 4, generator=draw) + client / 5
        found[f"client-{client}"] = (x, (x.sum(dim=1) > 0).long())
    return found


def plain_module() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def module_with_statistics() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))


class Forever(Mapping[str, Any]):
    """Clients without number, whose data are made when they are asked for."""

    def __init__(self, number: int) -> None:
        self._names = [f"client-{place}" for place in range(number)]
        self._data = list(make_data().values())

    def __getitem__(self, name: str) -> Any:
        return self._data[int(name.removeprefix("client-")) % CLIENTS]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def availability() -> Availability:
    there = {f"client-{place}": [(0.0, 0.8 + place / 3), (1.5, 9.0)] for place in range(CLIENTS)}
    return replace(Availability.from_periods(there), when_away="lose")


SCENARIOS: dict[str, dict[str, Any]] = {
    "asyncfeded": {},
    "rounds that are lost": {"world": lambda n: Virtual(suspension=0.4, workers=n)},
    "a barrier": {"rule": rules.fedavg(), "world": lambda n: Virtual(suspension=0.3, workers=n)},
    "buffers": {"rule": rules.fedbuff(buffer_size=4)},
    "a vector per client": {"rule": rules.ace()},
    "adaptive steps": {"rule": rules.REGISTRY["fadas-adaptive"]()},
    "statistics": {"module": module_with_statistics, "rule": rules.fedbuff(buffer_size=3)},
    "sketches": {"history": lambda: VersionHistory("sketch", 64)},
    "every version": {"history": lambda: VersionHistory("everything")},
    "a guard": {"guards": [guards.bounded_staleness(0.5)]},
    "few at work": {"world": lambda n: Virtual(at_work=2, suspension=0.2, workers=n)},
    "many clients": {
        "datasets": lambda: Forever(3000),
        "test": make_data()["client-0"],
        "world": lambda n: Virtual(at_work=3, workers=n),
    },
    "coming and going": {
        "world": lambda n: Virtual(
            memberships=[
                Membership("client-0", 0.0, 1.0),
                Membership("client-0", 2.0),
                *(Membership(f"client-{place}", place / 4) for place in range(1, CLIENTS)),
            ],
            workers=n,
        )
    },
    "being away": {"world": lambda n: Virtual(availability=availability(), workers=n)},
    "being away, few at work": {
        "world": lambda n: Virtual(availability=availability(), at_work=3, workers=n)
    },
}


def run(
    scenario: Mapping[str, Any],
    callbacks: Sequence[Callback] = (),
    workers: int = 1,
    resume: Path | None = None,
    **more: Any,
) -> tuple[Result, nn.Module]:
    """One run of a scenario."""
    module = scenario.get("module", plain_module)()
    result = federate(
        module,
        scenario.get("datasets", make_data)(),
        rule=scenario.get("rule"),
        seconds=SECONDS,
        world=scenario.get("world", lambda n: Virtual(workers=n))(workers),
        training=LocalTraining(batch_size=16, momentum=0.5),
        test=scenario.get("test"),
        callbacks=callbacks,
        evaluate_every=0.25,
        guards=scenario.get("guards", ()),
        history=scenario["history"]() if "history" in scenario else None,
        resume=resume,
        **more,
    )
    return result, module


def same(left: nn.Module, right: nn.Module) -> bool:
    """Whether two modules have the same bits."""
    pairs = zip(left.state_dict().values(), right.state_dict().values(), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def all_of(result: Result) -> dict[str, Any]:
    """Everything that a result says but how long it took."""
    return {**result.summary(), "wall_seconds": None, "curve": result.curve}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_was_cut_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    whole, model = run(scenario)
    counters = (whole.refused, whole.lost_rounds)
    events = whole.updates + sum(sum(of.values()) for of in counters) + len(whole.curve)
    saved = tmp_path / "saved"
    begun = False
    for cut in np.random.default_rng(3).integers(events // 8, events // 2, 3):
        callbacks: list[Callback] = [Checkpoint(saved, every=0.3), cut_after(int(cut))]
        with pytest.raises(PowerCut):
            run(scenario, callbacks, resume=saved if begun else None)
        begun = any(saved.glob("snapshot-*"))
        if not begun:
            (saved / "events.jsonl").unlink()
    assert begun, "nothing was saved before the last cut"
    again, resumed = run(scenario, resume=saved)
    assert again.log_sha256 == whole.log_sha256
    assert same(resumed, model)
    assert all_of(again) == all_of(whole)
    assert not list(saved.iterdir()), "what was saved goes when the run is over"


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("after", [1, 3])
def test_the_number_of_workers_may_change(before: int, after: int, tmp_path: Path) -> None:
    scenario = SCENARIOS["rounds that are lost"]
    whole, model = run(scenario)
    with pytest.raises(PowerCut):
        run(scenario, [Checkpoint(tmp_path, every=0.5), cut_after(60)], before)
    again, resumed = run(scenario, workers=after, resume=tmp_path)
    assert again.log_sha256 == whole.log_sha256
    assert same(resumed, model)


def test_callbacks_go_on_too(tmp_path: Path) -> None:
    def callbacks(folder: Path) -> list[Any]:
        folder.mkdir(exist_ok=True)
        curves = ClientCurves(every=0.5)
        return [
            EventLog(folder / "events.jsonl"),
            KeepBest(folder / "best.safetensors"),
            curves,
            StopAfter(90),
        ]

    uncut = callbacks(tmp_path / "whole")
    whole, _ = run({}, uncut)
    folder = tmp_path / "cut"
    with pytest.raises(PowerCut):
        run({}, [*callbacks(folder), Checkpoint(tmp_path / "saved", every=0.3), cut_after(70)])
    resumed = callbacks(folder)
    again, _ = run({}, resumed, resume=tmp_path / "saved")
    assert again.stopped_by == whole.stopped_by == "StopAfter(updates=90)"
    assert all_of(again) == all_of(whole)
    assert (resumed[1].best, resumed[1].version) == (uncut[1].best, uncut[1].version)
    assert resumed[2].curve == uncut[2].curve
    for file in ("events.jsonl", "best.safetensors"):
        assert (folder / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def begun_run(folder: Path) -> None:
    with pytest.raises(PowerCut):
        run({}, [Checkpoint(folder, every=0.3), cut_after(60)])


def test_a_run_under_other_settings_is_refused_by_name(tmp_path: Path) -> None:
    begun_run(tmp_path)
    with pytest.raises(StateError, match=r"seed must be 0, as in the saved run; given 1"):
        run({}, resume=tmp_path, seed=1)
    with pytest.raises(StateError, match=r"buffer_size must be None.*given 4"):
        run(SCENARIOS["buffers"], resume=tmp_path)
    with pytest.raises(StateError, match=r"suspension must be 0\.0"):
        run(SCENARIOS["rounds that are lost"], resume=tmp_path)
    with pytest.raises(StateError, match="model must be"):
        run({"module": module_with_statistics}, resume=tmp_path)
    again, _ = run({}, resume=tmp_path)
    assert again.finished


def test_a_run_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_run(tmp_path)
    monkeypatch.setattr(federation, "__version__", "9.9")
    with pytest.raises(StateError, match=r"saved by asyncfeded .*, this is 9\.9: go on with the"):
        run({}, resume=tmp_path)


def test_an_empty_or_missing_folder_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(StateError, match="holds none: begin the run anew"):
            run({}, resume=folder)
    assert not (tmp_path / "nowhere").exists()


def test_a_new_run_does_not_overwrite_a_saved_one(tmp_path: Path) -> None:
    begun_run(tmp_path)
    with pytest.raises(FileError, match="holds a saved run: go on with it"):
        run({}, [Checkpoint(tmp_path)])


def test_resume_and_checkpoint_name_the_same_folder(tmp_path: Path) -> None:
    begun_run(tmp_path)
    with pytest.raises(SettingError, match="resume must be the folder of the Checkpoint"):
        run({}, [Checkpoint(tmp_path / "other")], resume=tmp_path)


def test_a_log_that_was_changed_is_not_continued(tmp_path: Path) -> None:
    begun_run(tmp_path)
    log = tmp_path / "events.jsonl"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    with pytest.raises(StateError, match="have changed since"):
        run({}, resume=tmp_path)


def test_a_damaged_folder_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    begun_run(tmp_path)
    (snapshot,) = tmp_path.glob("snapshot-*")
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2] ^= 4
    snapshot.write_bytes(content)
    with pytest.raises(StateError, match=snapshot.name):
        run({}, resume=tmp_path)
    assert snapshot.read_bytes() == content


def test_a_run_without_every_is_not_saved_in_its_first_minute(tmp_path: Path) -> None:
    waiting: Callable[[Event, Run], None] = cut_after(60)
    with pytest.raises(PowerCut):
        run({}, [Checkpoint(tmp_path), waiting])
    assert not list(tmp_path.glob("snapshot-*"))
