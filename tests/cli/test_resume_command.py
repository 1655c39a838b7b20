"""`asyncfeded resume`, as a user types it; processes that are killed are in tests/kills."""

import json
import shutil
from pathlib import Path

import pytest

from asyncfeded import federate
from asyncfeded.callbacks import Callback, Checkpoint, Run
from asyncfeded.experiment.folders import RUN_FILES, result_folders
from asyncfeded.runtime import Event
from asyncfeded.version import __version__
from in_process import asyncfeded_here

RULE = """
from dataclasses import replace
from pathlib import Path

from asyncfeded import rules

CUT = Path(__file__).with_name("cut")  # says at which update the process is interrupted


def cut():
    rule = rules.fedasync(alpha=0.5)
    updates = 0

    def on_update(state, arrival):
        nonlocal updates
        updates += 1
        if CUT.exists() and updates == int(CUT.read_text()):
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
        """A run, interrupted in an update if one is named; gives what it said."""
        if cut is not None:
            (self.folder / "cut").write_text(str(cut))
        done = asyncfeded_here(command, *self.options, *more, "--out", out)
        assert done.returncode == (0 if cut is None else 130), done.stderr
        return done.stderr


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cut:
    monkeypatch.chdir(tmp_path)
    return Cut(tmp_path)


def check_same(left: Path, right: Path) -> None:
    assert {path.name for path in right.iterdir()} == {path.name for path in left.iterdir()}
    for name in SAME:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


@pytest.mark.parametrize("every", ["0.5", "100"])
def test_a_run_goes_on_from_another_folder_with_other_workers(
    cut: Cut, every: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut.run("whole")
    said = cut.run("out", "--checkpoint-every", every, cut=40)
    assert said.startswith("\ninterrupted; to go on: asyncfeded resume out; a run's folder holds")
    assert json.loads(Path("out/summary.json").read_text())["finished"] is False
    saved = bool(list(Path("out/checkpoint").glob("snapshot-*")))
    assert saved == (every == "0.5"), "the test means one run that was saved and one that was not"
    elsewhere = cut.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = asyncfeded_here("resume", "../out", "--workers", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("goes on with version" in done.stdout) == saved
    check_same(cut.folder / "whole", cut.folder / "out")
    again = asyncfeded_here("resume", "../out")
    assert again.returncode == 2
    assert again.stderr == (
        f"error: resume {str(elsewhere / '../out')!r}: its run is finished already, see "
        "summary.json\n"
    )


def test_a_run_that_is_not_to_be_saved_leaves_nothing_to_go_on_with(cut: Cut) -> None:
    said = cut.run("out", "--checkpoint-every", "0", cut=20)
    assert said.startswith("\ninterrupted; a run's folder holds")
    assert {path.name for path in Path("out").iterdir()} == set(RUN_FILES)


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_what_cannot_go_on_is_refused_in_one_line(cut: Cut) -> None:
    cut.run("out", "--checkpoint-every", "0.5", cut=40)
    begun, out = Path("out/checkpoint/run.json"), cut.folder / "out"
    (snapshot,) = begun.parent.glob("snapshot-*")
    original, content = begun.read_text(), snapshot.read_bytes()

    def refused(message: str) -> None:
        done = asyncfeded_here("resume", "out")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert message in done.stderr
        begun.write_text(original)
        snapshot.write_bytes(content)

    change(begun, f'"{__version__}"', '"0.0.1"')
    refused(f"was written by asyncfeded 0.0.1, this is {__version__}: go on with the version that")
    change(begun, '"format": 1', '"format": 2')
    refused("go on with the version that wrote it, or begin anew in another folder")
    change(begun, '"clients": "3"', '"clients": "4"')
    refused("clients must be 3, as in the saved run; given 4")
    change(begun, '"clients": "3"', '"clients": "many"')
    refused("clients must be a valid integer")
    change(begun, '"folder"', '"place"')
    refused("run.json' is damaged: folder: Field required")
    begun.write_text(original[:100])
    refused("run.json' is damaged: ")
    change(begun, '"command": "run"', '"command": "fly"')
    refused("is damaged: there is no command 'fly'")
    snapshot.write_bytes(content[:-40])
    refused(f"{snapshot.name}")
    cut.rule.write_text(RULE + "\n# other code\n")
    refused(f"rule {str(cut.rule.name) + ':cut'!r} has changed since the run began: put it back")
    cut.rule.write_text(RULE)
    change(Path("out/events.jsonl"), '"event":"join"', '"event":"jump"')
    refused("is not the log of the saved run")
    with result_folders({out: ()}, overwrite=False):
        refused(f"out {str(out)!r} is in use by another run: wait for its end")


def test_other_folders_are_refused_in_one_line(cut: Cut) -> None:
    import torch

    def interrupt(event: Event, run: Run) -> None:
        if run.updates == 3:
            raise KeyboardInterrupt

    data = [(torch.zeros(20, 3), torch.zeros(20, dtype=torch.long))] * 2
    callbacks: list[Callback] = [Checkpoint("saved", every=0.001), interrupt]
    with pytest.raises(KeyboardInterrupt):
        federate(torch.nn.Linear(3, 2), data, seconds=1e6, callbacks=callbacks)
    for folder, hint in (
        ("nowhere", "begin one by asyncfeded run --out FOLDER"),
        (".", "begin one by asyncfeded run --out FOLDER"),
        ("saved", "what a Checkpoint in Python has saved goes on by federate(resume=…)"),
    ):
        done = asyncfeded_here("resume", folder)
        assert done.returncode == 2
        assert done.stderr == (
            f"error: resume {str(Path(folder).absolute())!r} must be the folder of a run that was "
            f"interrupted; it holds none: {hint}\n"
        )


def test_a_new_run_asks_before_it_takes_the_place_of_an_interrupted_one(cut: Cut) -> None:
    cut.run("out", "--checkpoint-every", "0.5", cut=40)
    (Path("out/checkpoint") / "mine.txt").write_text("of somebody")
    done = asyncfeded_here("run", *cut.options, "--out", "out")
    assert done.returncode == 2
    assert done.stderr == (
        "error: out 'out' holds a run that was interrupted: go on with it by asyncfeded resume "
        "out, choose another folder, or give --overwrite\n"
    )
    cut.run("out", "--overwrite")
    assert {path.name for path in Path("out/checkpoint").iterdir()} == {"mine.txt"}
    shutil.rmtree("out/checkpoint")
    cut.run("whole")
    check_same(cut.folder / "whole", cut.folder / "out")


def test_what_a_killed_process_was_writing_goes_when_the_run_goes_on(cut: Cut) -> None:
    cut.run("out", cut=20)
    for folder in (Path("out"), Path("out/checkpoint")):
        (folder / ".0123456789abcdef.unfinished").write_text("half")
    assert asyncfeded_here("resume", "out").returncode == 0
    cut.run("whole")
    check_same(cut.folder / "whole", cut.folder / "out")
