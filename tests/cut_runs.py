"""Runs of the command line that are interrupted in an update that a test names."""

from pathlib import Path

from in_process import asyncfeded_here

RULE = """
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from annotated_types import Gt, Le

from asyncfeded import Rule, hyperparameters, rules

CUT = Path(__file__).with_name("cut")  # says after how many updates the process is interrupted


@hyperparameters
def cut(alpha: Annotated[float, Gt(0), Le(1), "the step"] = 0.5) -> Rule:
    rule = rules.fedasync(alpha=alpha)

    def on_update(state, arrival):
        if CUT.exists():
            left = int(CUT.read_text()) - 1
            CUT.write_text(str(left))
            if left == 0:
                CUT.unlink()
                raise KeyboardInterrupt
        return rule.on_update(state, arrival)

    return replace(rule, name="cut", on_update=on_update)
"""
TASK = """
import torch

from asyncfeded import Task


def tiny(clients: int, seed: int) -> Task:
    draw = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(40, 3, generator=draw) for _ in range(clients)]
    model = lambda: torch.nn.Linear(3, 2)
    return Task([(x, (x.sum(dim=1) > 0).long()) for x in inputs], model)
"""
SAME = ("events.jsonl", "accuracy.csv", "clients.csv", "model.safetensors")


class Cut:
    """A folder in which runs of a rule and a task of the user's can be interrupted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rule = folder / f"rule_{folder.name}.py"
        self.rule.write_text(RULE)
        (folder / f"task_{folder.name}.py").write_text(TASK)
        self.options = [
            *("--rule", f"{self.rule.name}:cut", "--task", f"task_{folder.name}.py:tiny"),
            *("--clients", "3", "--seconds", "4", "--evaluate-every", "0.5"),
        ]

    def run(self, out: str, *more: str, cut: int | None = None, command: str = "run") -> str:
        """A command, interrupted in an update if one is named; gives what it said."""
        if cut is not None:
            (self.folder / "cut").write_text(str(cut))
        done = asyncfeded_here(command, *self.options, *more, "--out", out)
        assert done.returncode == (0 if cut is None else 130), done.stderr
        return done.stderr


def check_same(left: Path, right: Path) -> None:
    assert {path.name for path in right.iterdir()} == {path.name for path in left.iterdir()}
    for name in SAME:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name
