"""What `make dist` builds runs where there is nothing else of this repository."""

import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

from asyncfeded import __version__

ROOT = Path(__file__).parent.parent
GIVEN = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and, made from that, the wheel."""
    source = tmp_path_factory.mktemp("source")
    for name in (*GIVEN, "constraints.txt"):
        shutil.copy(ROOT / name, source)
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=unwanted)
    built = tmp_path_factory.mktemp("dist")
    python_here("-m", "build", "--no-isolation", "--outdir", built, source)
    return built


def python_here(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def test_the_wheel_runs_in_an_environment_without_the_repository(
    built: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    python_here("-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    # The dependencies are those of this environment. A path in a .pth file brings no other .pth
    # file along: this environment's own link to the repository is not followed.
    (packages,) = environment.glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    print_where = "import asyncfeded; print(asyncfeded.__file__)"
    where = subprocess.check_output([python, "-c", print_where], text=True, cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(packages)
    command = environment / "bin" / "asyncfeded"
    settings = ["--task", "synthetic-1-1", "--seconds", "2", "--widths", "16,8", "--out", "out"]
    subprocess.run([command, "run", *settings], check=True, capture_output=True, cwd=tmp_path)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["finished"]
    assert summary["updates"] > 0


def test_the_sdist_has_what_an_install_needs_and_no_tests(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {Path(name).relative_to(f"asyncfeded-{__version__}") for name in archive.getnames()}
    assert {Path(name) for name in GIVEN} <= names
    assert Path("src/asyncfeded/py.typed") in names
    assert not any(name.is_relative_to("tests") for name in names)
