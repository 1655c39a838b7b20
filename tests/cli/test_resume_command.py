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
from cut_runs import RULE, Cut, check_same
from in_process import asyncfeded_here


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cut:
    monkeypatch.chdir(tmp_path)
    return Cut(tmp_path)


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
    Path("../out/checkpoint").mkdir()  # as a process leaves it that is killed at its last step
    again = asyncfeded_here("resume", "../out")
    assert again.returncode == 2
    assert not Path("../out/checkpoint").exists()
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


@pytest.mark.slow
def test_a_comparison_keeps_its_finished_runs_and_goes_on_in_the_middle_of_one(cut: Cut) -> None:
    more = ("--rule", "fedbuff", "--seed", "0", "--seed", "1", "--checkpoint-every", "0.5")
    cut.options = [*more[:2], *cut.options, *more[2:]]
    cut.run("whole", command="compare")
    cut.run("out", command="compare", cut=40)
    kept = Path("out/fedbuff/seed-1/summary.json").stat().st_mtime_ns
    inside = Path(f"out/{cut.rule.name}-cut/seed-0")
    assert list(inside.glob("checkpoint/snapshot-*")), "the test means a run in the middle"
    done = asyncfeded_here("resume", "out", "--workers", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("is there already") == 2
    assert done.stdout.count("goes on with version") == 1
    assert Path("out/fedbuff/seed-1/summary.json").stat().st_mtime_ns == kept
    for folder in sorted(Path("whole").glob("*/seed-*")):
        check_same(folder, Path("out") / folder.relative_to("whole"))
    assert {path.name for path in Path("out").iterdir()} == {
        path.name for path in Path("whole").iterdir()
    }
    tables = [Path(name, "compare.csv").read_text().splitlines() for name in ("whole", "out")]
    left, right = ([row.rpartition(",")[0] for row in table] for table in tables)
    assert left == right, "but for the last column, wall_seconds"
    both = [json.loads(Path(name, "summary.json").read_text())["runs"] for name in ("whole", "out")]
    for run in (*both[0], *both[1]):
        run |= {"wall_seconds": 0, "settings": {**run["settings"], "out": "", "workers": 1}}
    assert both[0] == both[1]


@pytest.mark.slow
def test_a_sweep_goes_on_in_the_middle_of_a_trial(cut: Cut) -> None:
    sweep = ["--search", "alpha=0.1:0.9", "--sampler", "random", "--trials", "2"]
    cut.options += [*sweep, "--seed", "0", "--seed", "1", "--checkpoint-every", "0.5"]
    cut.run("whole", command="sweep")
    said = cut.run("out", command="sweep", cut=650)
    assert said == (
        "\ninterrupted; to go on: asyncfeded resume out; the folder keeps the trials that were "
        "finished, in sweep.csv\n"
    )
    assert list(Path("out/checkpoint").glob("*/snapshot-*")), "the test means a run in the middle"
    shutil.copytree("out", "copy")
    for again in (["resume", "copy"], ["sweep", *cut.options, "--out", "out"]):
        done = asyncfeded_here(*again)
        assert (done.returncode, done.stderr) == (0, "")
        assert "trial 1" not in done.stdout
        assert done.stdout.count("is there already") == done.stdout.count("goes on with") == 1
        for name in ("sweep.csv", "best.toml"):
            assert Path(again[-1], name).read_bytes() == Path("whole", name).read_bytes()
        assert not Path(again[-1], "checkpoint").exists()
