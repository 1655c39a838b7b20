"""Histories of one run that is killed again and again."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cut_runs import SAME, TASK
from kills.nursery import Nursery

SCENARIOS = (
    ("--rule", "asyncfeded", "--suspension", "0.3"),
    ("--rule", "fedbuff", "--buffer-size", "4", "--checkpoint-every", "0.7"),
    ("--rule", "fedavg", "--suspension", "0.2", "--checkpoint-every", "0.2"),
    ("--rule", "ace", "--checkpoint-every", "0.4"),
    ("--rule", "asyncfeded", "--at-work", "2", "--checkpoint-every", "0.1"),
)
OPTIONS = (
    *("--task", "tiny_task.py:tiny", "--clients", "4", "--seconds", "5"),
    *("--evaluate-every", "0.5", "--checkpoint-every", "0.3"),
)
MOST_KILLS = 6
STEPS_OF_THE_END = 30
"""The last steps of a run: results are written, and what was saved goes."""
KILLED = -9


class HistoryError(AssertionError):
    """A history that did not end as it must."""


@dataclass
class Killed:
    """How many kills there were, of them before the first save and while results were written."""

    kills: int = 0
    histories: int = 0
    unsaved: int = 0
    ending: int = 0
    tell: bool = False
    """Whether each process is told of."""
    result: str = "log, curve, clients and model as without a kill"
    wholes: dict[tuple[str, ...], tuple[int, dict[str, bytes]]] = field(default_factory=dict)
    """Per scenario the number of steps of a run without kills, and its files."""

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills in {self.histories:,} runs, {self.unsaved:,} of them before the "
            f"first save and {self.ending:,} while results were written"
        )


def prepare(folder: Path) -> None:
    """Make what the runs need."""
    (folder / "tiny_task.py").write_text(TASK)


def whole(
    nursery: Nursery, scenario: tuple[str, ...], killed: Killed
) -> tuple[int, dict[str, bytes]]:
    """A run without kills: its steps and its files."""
    if scenario not in killed.wholes:
        out = nursery.folder / f"whole-{len(killed.wholes)}"
        if nursery.run("run", *OPTIONS, *scenario, "--out", str(out)) != 0:
            raise HistoryError(nursery.said())
        killed.wholes[scenario] = nursery.steps(), files_of(out)
    return killed.wholes[scenario]


def files_of(out: Path) -> dict[str, bytes]:
    """The files that must be the same, and which others there are."""
    same = {name: (out / name).read_bytes() if (out / name).exists() else b"" for name in SAME}
    return same | {
        "names": repr(sorted(str(path.relative_to(out)) for path in out.rglob("*"))).encode()
    }


def moment(draw: np.random.Generator, steps: int, number: int) -> int:
    """The step at which a process dies; the first of a history has all `steps`, others fewer.

    Some of the first die late, where files are written and what was saved goes.
    """
    if number == 0 and draw.random() < 0.4:
        return int(draw.integers(steps - STEPS_OF_THE_END, steps + 1))
    return 1 + int(steps * draw.random() ** (1 if number == 0 else 3))


def history(nursery: Nursery, seed: int, killed: Killed) -> None:
    """Kill a run at moments drawn by the seed, go on with it, and compare its end."""
    draw = np.random.default_rng(seed)
    scenario = SCENARIOS[int(draw.integers(len(SCENARIOS)))]
    steps, expected = whole(nursery, scenario, killed)
    out = nursery.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    kills = int(draw.integers(1, MOST_KILLS + 1))
    code = None
    for number in range(kills + 1):
        begun = any((out / name).is_file() for name in ("checkpoint/run.json", "summary.json"))
        workers = ("--workers", str(draw.integers(1, 3)))
        command = (
            ("resume", "out", *workers)
            if begun
            else ("run", *OPTIONS, *scenario, *workers, "--out", "out")
        )
        die_at = moment(draw, steps, number) if number < kills else None
        code = nursery.run(*command, die_at=die_at)
        if killed.tell:
            print(f"{' '.join(command)}: step {die_at}, exit code {code}")
        if code != KILLED:
            break
        killed.kills += 1
        if (out / "model.safetensors").exists():
            killed.ending += 1
        elif not any(out.glob("checkpoint/snapshot-*.bin")):
            killed.unsaved += 1
    if code == 2 and "is finished already" in nursery.said():
        code = 0  # all results were there before the last kill
    if code != 0:
        raise HistoryError(f"seed {seed}: exit code {code}: {nursery.said()[-2000:]}")
    found = files_of(out)
    for name, content in expected.items():
        if found[name] != content:
            raise HistoryError(
                f"seed {seed}: {name} is not as without the kills, but {found[name][:200]!r}: "
                f"python -m kills --seed {seed}"
            )
    killed.histories += 1
