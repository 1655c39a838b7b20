"""A folder for results: nothing of anybody's is deleted, and one run at a time writes to it."""

import fcntl
import os
from pathlib import Path

import pytest

from asyncfeded.core.errors import FileError
from asyncfeded.experiment.folders import COMPARISON_FILES, RUN_FILES, result_folders
from command_line import asyncfeded

pytestmark = pytest.mark.slow

QUICK = ["--seconds", "1", "--clients", "4"]


@pytest.mark.parametrize("name", ["model.safetensors", "clients.csv", "events.jsonl"])
def test_a_file_of_somebody_else_s_is_refused_and_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    done = asyncfeded("run", *QUICK, "--out", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: out {str(tmp_path)!r} holds {name}, which this run would write: choose another "
        "folder, or give --overwrite\n"
    )
    assert (tmp_path / name).read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_only_what_is_written_is_overwritten(tmp_path: Path) -> None:
    for name in (*RUN_FILES, *COMPARISON_FILES, "mine.txt"):
        (tmp_path / name).write_text("before")
    with result_folders({tmp_path: RUN_FILES}, overwrite=True):
        kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["compare.csv", "compare.png", "mine.txt"]


def test_a_second_run_is_kept_out_of_a_folder_until_the_first_has_ended(tmp_path: Path) -> None:
    with result_folders({tmp_path: RUN_FILES}, overwrite=False):
        for overwrite in ("--overwrite", "--momentum=0"):
            done = asyncfeded("run", *QUICK, overwrite, "--out", tmp_path)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == (
                f"error: out {str(tmp_path)!r} is in use by another run: wait for its end, or "
                "choose another folder\n"
            )
    with result_folders({tmp_path: RUN_FILES}, overwrite=False):
        pass


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        fcntl.flock(os.open(tmp_path, os.O_RDONLY), fcntl.LOCK_EX)
        os._exit(0)
    os.waitpid(process, 0)
    with result_folders({tmp_path: RUN_FILES}, overwrite=False):
        pass


def test_nothing_is_deleted_if_one_of_several_folders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "summary.json").write_text("before")
    (tmp_path / "b").write_text("no folder")
    folders = {tmp_path / "a": RUN_FILES, tmp_path / "b": RUN_FILES}
    with pytest.raises(FileError, match="b' cannot be written"), result_folders(folders, True):
        pass
    assert (tmp_path / "a" / "summary.json").read_text() == "before"


def test_the_default_folder_depends_on_what_the_file_says(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    for clients in (3, 4):
        config.write_text(f"seconds = 1\nclients = {clients}\n")
        done = asyncfeded("run", "--config", config, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "runs").iterdir())) == 2
    again = asyncfeded("run", "--seconds", "1", "--clients", "4", cwd=tmp_path)
    assert again.returncode == 2  # the same settings, however they were given
    assert "give --overwrite" in again.stderr
