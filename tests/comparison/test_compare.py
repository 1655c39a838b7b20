"""`compare`: every rule and seed, from the same model and data."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import Comparison, EventLog, StopAfter, compare, rules
from asyncfeded.core.errors import SettingError
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Event, Joined, Received, Started

TWO = {"ours": rules.asyncfeded(), "buffer": rules.fedbuff(buffer_size=2)}


def clients() -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(20, 5, generator=draw) for _ in range(3)]
    return [(x, (x[:, 0] > 0).long()) for x in inputs]


def module() -> nn.Module:
    return nn.Linear(5, 2)


def compared(**given: Any) -> Comparison:
    given = {"make_model": module, "rules": TWO, "seeds": 2, "seconds": 1.0, **given}
    return compare(datasets=clients(), **given)


class Heard:
    """Keeps the events of each run."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, int], list[Event]] = {}

    def __call__(self, rule: str, seed: int) -> list[Any]:
        events = self.runs[rule, seed] = []

        def note(event: Event, _: Run) -> None:
            events.append(event)

        return [note]


def test_every_rule_meets_the_same_model_and_devices_in_each_seed() -> None:
    heard = Heard()
    comparison = compared(callbacks=heard)
    assert {rule: list(runs) for rule, runs in comparison.results.items()} == {
        "ours": [0, 1],
        "buffer": [0, 1],
    }
    begun = {
        key: next(e.parameters_sha256 for e in events if isinstance(e, Started))
        for key, events in heard.runs.items()
    }
    assert begun["ours", 0] == begun["buffer", 0] != begun["ours", 1] == begun["buffer", 1]
    arrivals = {
        key: {
            e.receipt.client_id: e.seconds
            for e in events
            if isinstance(e, Received) and e.round == 0
        }
        for key, events in heard.runs.items()
    }
    assert arrivals["ours", 0] == arrivals["buffer", 0] != arrivals["ours", 1]
    assert any(isinstance(event, Joined) for event in heard.runs["ours", 0])


def test_a_comparison_is_the_same_again_and_whatever_was_drawn_before() -> None:
    logs = []
    for number in (1, 2):
        torch.manual_seed(number)
        np.random.seed(number)  # noqa: NPY002
        random.seed(number)
        comparison = compared(seeds=[7])
        logs.append([runs[7].log_sha256 for runs in comparison.results.values()])
    assert logs[0] == logs[1]
    assert logs[0][0] != logs[0][1]


def test_a_model_that_is_made_once_is_not_trained() -> None:
    only = nn.Linear(5, 2)
    weight = only.weight.detach().clone()
    comparison = compared(make_model=lambda: only, rules={"a": TWO["ours"], "b": TWO["ours"]})
    assert torch.equal(only.weight, weight)
    for seed in (0, 1):
        assert len({runs[seed].log_sha256 for runs in comparison.results.values()}) == 1


def test_metrics_of_ones_own_are_compared_by_name() -> None:
    def ones(outputs: torch.Tensor, targets: torch.Tensor) -> float:
        return float((outputs.argmax(1) == 1).float().mean())

    comparison = compared(metrics={"ones": ones}, metric="ones", target=2.0, seeds=1)
    texts = comparison.texts()
    assert texts.headings[1] == "max ones"
    assert texts.rows[0][texts.headings.index("ones 2 after")] == "never"


def test_callbacks_are_made_anew_for_every_run() -> None:
    comparison = compared(callbacks=lambda rule, seed: [StopAfter(updates=3), EventLog()])
    for runs in comparison.results.values():
        assert [run.updates for run in runs.values()] == [3, 3]


def test_an_interrupt_keeps_the_runs_that_were_finished() -> None:
    def callbacks(rule: str, seed: int) -> list[Any]:
        def stop(event: Event, run: Run) -> None:
            if (rule, seed) == ("buffer", 1) and isinstance(event, Joined):
                raise KeyboardInterrupt

        return [stop]

    with pytest.raises(KeyboardInterrupt) as caught:
        compared(callbacks=callbacks)
    comparison = caught.value.comparison  # type: ignore[attr-defined]
    assert {rule: list(runs) for rule, runs in comparison.results.items()} == {
        "ours": [0, 1],
        "buffer": [0],
    }
    assert comparison.results["buffer"][0].finished
    assert not caught.value.result.finished  # type: ignore[attr-defined]
    assert "buffer" in repr(comparison)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"make_model": nn.Linear(5, 2)}, "make_model must be a function that makes the model, "),
        ({"make_model": lambda: 7}, "make_model must be a function that returns a torch module; "),
        ({"rules": {}}, "rules must be at least one rule; given {}"),
        ({"rules": [rules.fedavg()]}, "rules must be a mapping from names to rules, "),
        ({"rules": {"a": rules.fedavg}}, "rules['a'] must be a rule, such as fedbuff(); given a f"),
        ({"seeds": 0}, "seeds must be at least 1; given 0"),
        ({"seeds": "01"}, "seeds must be a whole number; given '01'"),
        ({"seeds": [1, 1]}, "seeds must be without repeats; given [1, 1]"),
        ({"seeds": []}, "seeds must be at least one seed; given []"),
        ({"seed": 1}, "seed is no argument of compare: write seeds=[0, 1, 2]"),
        ({"rule": rules.fedavg()}, "rule is no argument of compare: write rules={'a name': rule}"),
        ({"metric": "f1"}, "metric must be one that is measured, accuracy, loss; given 'f1'"),
        ({"callbacks": [StopAfter(1)]}, "callbacks must be a function of (rule, seed) that makes"),
        ({"suspension": 0.1}, "suspension is no argument of federate: write world=Virtual("),
        ({"world": "ray"}, "world must be a world, such as Virtual() or Ray(); given a str"),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        compared(**given)
    assert str(caught.value).startswith(message)
