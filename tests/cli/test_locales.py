"""The command line in a locale that knows ASCII alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

QUICK = ("--seconds", "1", "--clients", "3")
ASCII = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def in_ascii(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "asyncfeded", *arguments]
    return subprocess.run(command, capture_output=True, cwd=cwd, env=ASCII, timeout=120)


def test_a_run_in_a_folder_with_an_accent_has_all_its_files(tmp_path: Path) -> None:
    done = in_ascii("run", *QUICK, "--out", "é", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads((tmp_path / "é" / "summary.json").read_bytes())["settings"]["out"] == "é"
    assert len(list((tmp_path / "é").iterdir())) == 6


def test_a_table_is_printed_with_escapes_for_what_ascii_lacks(tmp_path: Path) -> None:
    options = ("--rule", "fedavg", "--seed", "0", "--seed", "1")
    done = in_ascii("compare", *QUICK, *options, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"% \\xb1 " in done.stdout
    assert done.stdout.isascii()


def test_help_is_printed(tmp_path: Path) -> None:
    done = in_ascii("run", "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"--gamma-bar" in done.stdout
