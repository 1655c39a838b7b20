"""Rules and tasks of the user's own on the command line."""

import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from asyncfeded import own_code
from command_line import asyncfeded_here

RULE = """
from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt

from asyncfeded import Decision, Rule, Step, Work, hyperparameters


@hyperparameters
def momentum(keep: Annotated[float, Ge(0), Lt(1), "how much of a step is kept"] = 0.5) -> Rule:
    def on_update(velocity, arrival):
        velocity = keep * velocity + (1 - keep) * arrival.delta
        return Decision(velocity, Work(2), Step(0.5, velocity))

    return Rule("momentum", Work(2), np.zeros_like, on_update)


@hyperparameters
def named_badly(seconds: Annotated[float, Ge(0), "the name of a setting"] = 0.5) -> Rule:
    return momentum()


def no_rule():
    return 3


def backwards():
    def on_update(_, arrival):
        return Decision(None, Work(2), Step(-1.0, arrival.delta))

    return Rule("backwards", Work(2), lambda _: None, on_update)
"""

TASK = """
import torch

from asyncfeded import LocalTraining, Task


def regression(clients: int, seed: int) -> Task:
    draw = torch.Generator().manual_seed(seed)
    inputs = {f"site-{n}": torch.randn(30, 3, generator=draw) for n in range(clients)}
    return Task(
        datasets={name: (x, x.sum(dim=1, keepdim=True)) for name, x in inputs.items()},
        model=lambda: torch.nn.Linear(3, 1),
        loss=torch.nn.functional.mse_loss,
        metrics={"worst": lambda outputs, targets: (outputs - targets).abs().max().item()},
        training=LocalTraining(learning_rate=0.05),
    )


def fixed() -> Task:
    x = torch.zeros(20, 3)
    return Task([(x, x[:, 0].long())] * 2, lambda: torch.nn.Linear(3, 2), test=(x, x[:, 0].long()))


def no_task():
    return 3


def broken():
    raise ZeroDivisionError("nothing to divide")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name makes its modules new to this process."""
    (tmp_path / f"rule_{tmp_path.name}.py").write_text(RULE)
    (tmp_path / f"task_{tmp_path.name}.py").write_text(TASK)
    return tmp_path


def place(folder: Path, kind: str, factory: str) -> str:
    return f"{folder / f'{kind}_{folder.name}.py'}:{factory}"


def test_a_rule_and_a_task_of_one_s_own_run_with_their_own_options(folder: Path) -> None:
    out = folder / "out"
    done = asyncfeded_here(
        *("run", "--rule", place(folder, "rule", "momentum"), "--keep", "0.25"),
        *("--task", place(folder, "task", "regression"), "--clients", "3", "--data-seed", "4"),
        *("--seconds", "2", "--evaluate-every", "0.5", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["settings"]["hyperparameters"] == {"keep": 0.25}
    assert summary["updates"] > 5
    worst = summary["metrics"]["worst"]
    assert worst["final"] < worst["max"]
    assert summary["max_accuracy"] is None
    assert (out / "accuracy.csv").read_text().startswith("seconds,version,loss,worst\n")
    clients = (out / "clients.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in clients[1:]] == ["site-0", "site-1", "site-2"]


def test_a_rule_of_one_s_own_is_compared_with_ours(folder: Path) -> None:
    done = asyncfeded_here(
        *("compare", "--rule", place(folder, "rule", "momentum"), "--rule", "fedavg"),
        *("--keep", "0.5", "--task", place(folder, "task", "fixed")),
        *("--seconds", "1", "--out", folder / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "momentum" in done.stdout


def test_a_task_without_accuracy_is_compared_by_its_loss(folder: Path) -> None:
    done = asyncfeded_here(
        *("compare", "--rule", "fedavg", "--rule", "fedbuff", "--clients", "3"),
        *("--task", place(folder, "task", "regression"), "--seconds", "1", "--out", folder / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "min loss" in done.stdout
    assert "–" not in done.stdout.partition("min loss")[2].partition("plot:")[0]


def test_a_rule_in_a_file_of_settings_brings_its_options_too(folder: Path) -> None:
    config = folder / "my.toml"
    config.write_text(f"rule = {json.dumps(place(folder, 'rule', 'momentum'))}\nseconds = 0.5\n")
    out = folder / "out"
    done = asyncfeded_here("run", "--config", config, "--keep", "0.125", "--out", out)
    assert done.returncode == 0, done.stderr
    settings = json.loads((out / "summary.json").read_text())["settings"]
    assert settings["hyperparameters"] == {"keep": 0.125}


def test_an_installed_package_names_rules_and_tasks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    installed = EntryPoints(
        EntryPoint(f"{kind}-of-{folder.name}", f"{kind}_{folder.name}:{factory}", group)
        for kind, factory, group in (
            ("rule", "momentum", "asyncfeded.rules"),
            ("task", "fixed", "asyncfeded.tasks"),
        )
    )
    monkeypatch.setattr(own_code, "entry_points", installed.select)
    rule, task = f"rule-of-{folder.name}", f"task-of-{folder.name}"
    out = folder / "out"
    done = asyncfeded_here(
        *("run", "--rule", rule, "--keep", "0.75", "--task", task, "--leave", "client-1@0.5"),
        *("--seconds", "1", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    settings = json.loads((out / "summary.json").read_text())["settings"]
    assert settings["hyperparameters"] == {"keep": 0.75}
    assert len((out / "clients.csv").read_text().splitlines()) == 1 + 2


@pytest.mark.parametrize(
    ("kind", "factory", "message"),
    [
        ("rule", "nothing", "has no 'nothing'"),
        ("rule", "RULE!", "must be FILE.py:factory or package.module:factory"),
        ("rule", "no_rule", "must return a Rule; it gave a int"),
        ("rule", "named_badly", "its hyperparameter 'seconds' has the name of a setting"),
        ("task", "no_task", "must return an asyncfeded.Task; it gave a int"),
        ("task", "broken", "cannot be made: ZeroDivisionError: nothing to divide"),
    ],
)
def test_what_is_wrong_with_own_code_is_said_in_one_line(
    folder: Path, kind: str, factory: str, message: str
) -> None:
    done = asyncfeded_here("run", f"--{kind}", place(folder, kind, factory), "--seconds", "1")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_not_there_or_does_not_load_is_named(folder: Path) -> None:
    missing = asyncfeded_here("run", "--rule", f"{folder / 'missing.py'}:momentum")
    assert (missing.returncode, "there is no file" in missing.stderr) == (2, True)
    (folder / f"wrong_{folder.name}.py").write_text("import nowhere_to_be_found\n")
    wrong = asyncfeded_here("run", "--task", place(folder, "wrong", "make"))
    assert wrong.returncode == 2
    assert "ModuleNotFoundError: No module named 'nowhere_to_be_found'" in wrong.stderr


def test_a_task_without_an_argument_for_clients_refuses_a_number_of_them(folder: Path) -> None:
    done = asyncfeded_here("run", "--task", place(folder, "task", "fixed"), "--clients", "3")
    assert done.returncode == 2
    assert "clients must be left out" in done.stderr


def test_a_rule_is_checked_against_the_contract(folder: Path) -> None:
    good = asyncfeded_here("check-rule", place(folder, "rule", "momentum"))
    assert (good.returncode, good.stdout.count("ok ")) == (0, 11)
    bad = asyncfeded_here("check-rule", place(folder, "rule", "backwards"))
    assert bad.returncode == 1
    assert "FAILED  learns from a single client" in bad.stdout
